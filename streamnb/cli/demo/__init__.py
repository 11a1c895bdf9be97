"""The demo: the command, its stage (broker, engine, writer and reader) and the generated mailbox."""

from streamnb.cli.demo.command import demo

__all__ = ["demo"]
