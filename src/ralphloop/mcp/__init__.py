"""The Model Context Protocol on stdin and stdout: a person's own assistant asks about the night.

    a line ──► json_rpc.read ──► server: answered at once, or queued ──► a tool ──► one line

Only the protocol is here: which tools there are, and what each does, is the command's matter
(`cli.mcp`).  One thread reads, so that a ping is answered and a call can be withdrawn while another
call takes its time; calls themselves run one after the other, on the main thread.

A message is a line of bounded length, the calls that wait are bounded in number, an answer is
bounded and without secrets.  Nothing else can get onto the stream: what is printed meanwhile, also
by a process that a tool starts, goes to stderr.
"""
