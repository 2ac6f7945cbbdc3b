"""What the keys do, as a page."""

from __future__ import annotations

from ralphloop.ui.monitor.pages import Page
from ralphloop.ui.monitor.paint import line
from ralphloop.ui.monitor.values import Tone

_TEXT = """\
Look
  up, down, Enter   choose a story and open it; the mouse does the same
  i                 the current iteration: verdict, prompt, transcript, checks
  h                 history: the iterations of this run, and all runs
  Tab               from the stories to the log and back
  /                 search the log: Enter finds the next older line, Esc ends the search
  f                 follow the log, or stop following
  t                 dark or light
  q                 quit the monitor; the run goes on

Steer (each is asked of the run, and its answer is shown)
  p                 pause after this iteration, and go on again
  s                 stop the run gently; asks first
  n                 a note for the next prompt
  b                 raise the budget: 5 or $2.50 adds dollars, 2h or 90m adds time
  k, a              skip the chosen story, or set it aside: the run goes on with others
  r                 try the chosen story again
  c                 reset the circuit to CLOSED

Marks
  ✓                 passed, with how well it is proven: verified, checked, claimed, by hand
  ▶                 an agent works on it now
  ?                 it waits for you: open it to see the question
  ⊘                 set aside for now
  !                 passed, but somebody should review it
  ○ ·               open; waits on another story
  2✗                two attempts failed

The same from a shell: ralph pause, resume, stop, skip, retry, note, budget"""

HELP = Page(
    title="Help",
    lines=tuple(
        line((text, Tone.PLAIN if text.startswith(" ") else Tone.STRONG))
        for text in _TEXT.splitlines()
    ),
)
