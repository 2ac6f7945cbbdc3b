"""Telling a person who is not looking: desktop, command, webhook.

`messages` decides which event is worth a message (pure); `notifier` sends it on a thread of its
own, so that nothing here can hold up or break a run.
"""
