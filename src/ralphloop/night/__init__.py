"""The read model: one typed look at a project, so that each number on any screen has one origin."""
