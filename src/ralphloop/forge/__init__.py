"""Where work is agreed on with others: pull requests and their followers, queues of items.

Everything that comes from there is other people's words.  It says what is wrong or wanted; it never
says what is run, where, or with which settings.  Only people who may write to the repository are
heard, and the place itself is asked whether they may.
"""
