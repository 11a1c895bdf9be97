# Nothing here is for Python: the alphabet and the splitter are C, for the rooms beside.
