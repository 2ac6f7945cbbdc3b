"""The read model: one typed look at a project, from its journal, its lock and its story file.

Whatever a person sees of a run, on any screen and in any file, is shown from here, so that every
number has one origin: standing and grade of a story, limits with what a person added, the state
of the run, what to do next.
"""
