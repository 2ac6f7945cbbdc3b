"""Telling a person who is not looking: desktop, command, webhook.

`messages` decides which event is worth a message (pure), `channels` and `webhook` send it,
`Notifier` joins them on a thread of its own, so that nothing here can hold up or break a run.
"""

from __future__ import annotations

from ralphloop.notify.notifier import Notifier

__all__ = ["Notifier"]
