"""One conversation with a client: greeting, the list of tools, calls, and calls taken back."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from queue import SimpleQueue
from typing import Any, BinaryIO, NamedTuple

import msgspec

from ralphloop.errors import RalphError
from ralphloop.mcp import json_rpc
from ralphloop.mcp.json_rpc import ErrorCode, Id, Json, Malformed, Notification, RpcRequest

# Newest first.  The one between the last two asks for batches, the newest for no greeting at all;
# clients of either agree to one of these.
REVISIONS = ("2025-11-25", "2025-06-18", "2024-11-05")
MOST_WAITING = 32
LONGEST_ANSWER = 60_000  # characters
_CUT = "\n… the rest is left out"


class OfferedTool(NamedTuple):
    """Something that can be asked for."""

    name: str
    title: str
    description: str
    arguments: type[msgspec.Struct]
    call: Callable[[Any], str]
    is_reading: bool = True
    is_destructive: bool = False

    def listed(self) -> Json:
        """As the list of tools has it."""
        hints = {"readOnlyHint": self.is_reading, "openWorldHint": False}
        if not self.is_reading:
            hints["destructiveHint"] = self.is_destructive
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": _schema(self.arguments),
            "annotations": hints,
        }


class _Call(NamedTuple):
    """What a client waits for."""

    id: Id
    tool: OfferedTool
    arguments: Json


class _NoCall(Exception):
    """A request that is not taken for a call, and why."""

    def __init__(self, code: ErrorCode, words: str) -> None:
        super().__init__(words)
        self.code = code
        self.words = words


class Server:
    """Answers one client until it leaves."""

    def __init__(
        self,
        tools: Sequence[OfferedTool],
        *,
        version: str,
        instructions: str,
        tidy: Callable[[str], str],
    ) -> None:
        """`tidy` is what every word of an answer passes on its way out."""
        self._tools = {tool.name: tool for tool in tools}
        self._version = version
        self._instructions = instructions
        self._tidy = tidy
        self._is_greeted = False
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._awaited: set[Id] = set()  # calls that somebody still waits for
        self._lock = threading.Lock()
        self._out: BinaryIO | None = None

    def serve(self, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        """Answer until the client closes its side; what it asked for before is still done."""
        self._out = outgoing
        reader = threading.Thread(target=self._listen, args=[incoming], daemon=True)
        reader.start()
        while (call := self._calls.get()) is not None:
            if not self._is_awaited(call.id):
                continue
            answer = json_rpc.result(call.id, self._carry_out(call))
            if not self._send_if_awaited(call.id, answer):
                return

    def _listen(self, incoming: BinaryIO) -> None:
        for line in _lines(incoming):
            if not self._hear(line):
                break
        self._calls.put(None)

    def _hear(self, line: bytes) -> bool:
        """Take one message; False where nobody reads what is answered."""
        what = json_rpc.read(line)
        match what:
            case None:
                return True
            case Malformed():
                return self._send(json_rpc.error(what.id, what.code, self._tidy(what.words)))
            case Notification():
                self._take_back(what)
                return True
            case RpcRequest():
                answer = self._answer(what)
                return self._send(answer) if answer is not None else True

    def _answer(self, asked: RpcRequest) -> bytes | None:
        """What is answered at once; None for a call, which waits for its turn."""
        match asked.method:
            case "initialize":
                self._is_greeted = True
                return json_rpc.result(asked.id, self._greeting(asked.params))
            case "ping":
                return json_rpc.result(asked.id, {})
            case "tools/list" | "tools/call" if not self._is_greeted:
                return json_rpc.error(asked.id, ErrorCode.REQUEST, "initialize comes first")
            case "tools/list":
                listed = [tool.listed() for tool in self._tools.values()]
                return json_rpc.result(asked.id, {"tools": listed})
            case "tools/call":
                return self._queue(asked)
            case _:
                words = f"there is no method {asked.method[:60]!r}"
                return json_rpc.error(asked.id, ErrorCode.METHOD, self._tidy(words))

    def _greeting(self, params: Mapping[str, object]) -> Json:
        wanted = str(params.get("protocolVersion", ""))
        # One it knows, then: the newest that is not newer than what it asked for.
        agreed = next((one for one in REVISIONS if one <= wanted), REVISIONS[0])
        return {
            "protocolVersion": agreed,
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": "ralph", "title": "ralph", "version": self._version},
            "instructions": self._instructions,
        }

    def _queue(self, asked: RpcRequest) -> bytes | None:
        """Have a call wait for its turn; what is answered where it is none."""
        try:
            call = self._call_of(asked)
        except _NoCall as no:
            return json_rpc.error(asked.id, no.code, self._tidy(no.words))
        with self._lock:
            self._awaited.add(call.id)
        self._calls.put(call)
        return None

    def _call_of(self, asked: RpcRequest) -> _Call:
        name = asked.params.get("name")
        tool = self._tools.get(name) if isinstance(name, str) else None
        arguments = asked.params.get("arguments") or {}
        if tool is None:
            raise _NoCall(ErrorCode.PARAMS, f"there is no tool {str(name)[:60]!r}")
        if not isinstance(arguments, dict):
            raise _NoCall(ErrorCode.PARAMS, "the arguments have to be an object")
        with self._lock:
            if asked.id in self._awaited:
                raise _NoCall(ErrorCode.REQUEST, "a call with this id is still waited for")
            if len(self._awaited) >= MOST_WAITING:
                raise _NoCall(ErrorCode.REQUEST, "too many calls wait already")
        return _Call(asked.id, tool, arguments)

    def _take_back(self, told: Notification) -> None:
        """A call that was taken back is not begun, or its result is not told."""
        if told.method == "notifications/cancelled":
            taken = told.params.get("requestId")
            with self._lock:
                self._awaited = {one for one in self._awaited if one != taken}

    def _is_awaited(self, call: Id) -> bool:
        with self._lock:
            return call in self._awaited

    def _carry_out(self, call: _Call) -> Json:
        """The result of a call; what went wrong in it is one, which the model can read."""
        try:
            arguments = msgspec.convert(call.arguments, call.tool.arguments)
            return self._told(call.tool.call(arguments))
        except msgspec.ValidationError as error:
            return self._told(f"wrong arguments: {error}", is_error=True)
        except RalphError as error:
            step = f"\nnext: {error.next_step}" if error.next_step else ""
            return self._told(f"error: {error.message}{step}", is_error=True)
        except Exception as error:  # noqa: BLE001 - one call that fails must not end the others
            words = f"internal error: {type(error).__name__}: {error}"[:300]
            return self._told(words, is_error=True)

    def _told(self, words: str, *, is_error: bool = False) -> Json:
        text = self._tidy(words)
        if len(text) > LONGEST_ANSWER:
            text = text[: LONGEST_ANSWER - len(_CUT)] + _CUT
        return {"content": [{"type": "text", "text": text}], "isError": is_error}

    def _send_if_awaited(self, call: Id, answer: bytes) -> bool:
        with self._lock:
            is_awaited = call in self._awaited
            self._awaited.discard(call)
        return self._send(answer) if is_awaited else True

    def _send(self, line: bytes) -> bool:
        """Say a line; False where nobody reads any more."""
        with self._lock:
            if self._out is None:
                return False
            try:
                self._out.write(line)
                self._out.flush()
            except OSError:
                self._out = None
        return self._out is not None


def _lines(incoming: BinaryIO) -> Iterator[bytes]:
    """Line by line; of one that is too long only so much that this can be seen."""
    most = json_rpc.LONGEST_MESSAGE + 1
    while line := incoming.readline(most):
        if not line.endswith(b"\n") and len(line) == most:
            rest = line
            while rest and not rest.endswith(b"\n"):
                rest = incoming.readline(most)
        if line.strip():
            yield line


def _schema(arguments: type[msgspec.Struct]) -> Json:
    """The JSON Schema of a tool's arguments, from the type that reads them."""
    _, components = msgspec.json.schema_components([arguments])
    found: Json = components[arguments.__name__]
    found.pop("title", None)
    return found
