"""The demo: one command, its stage (broker, writer, engine, reader) and the mailbox that is played."""

from streamnb.cli.demo.command import demo

__all__ = ["demo"]
