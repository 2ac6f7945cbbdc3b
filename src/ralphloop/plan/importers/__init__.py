"""Lists of other tools as stories: one module a format, pure, from texts to stories and remarks.

Each takes the documents it was given, the first of which is the list itself, and gives back a
`Conversion`.  It keeps ids, order, what waits for what, criteria and what is done, says of every
story in which line of which file it stands, and names what it could not read.
"""
