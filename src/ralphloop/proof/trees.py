"""The mutants of a change to a file of another language than Python, by its grammar.

The grammars are an extra, `ralphloop[mutants]`, and loaded when a file of their language is asked
for.  What a function returns is bent in the text: JavaScript and TypeScript hand it through a
function that is put behind the file, and so do Go and Java where they have no sign for it; else it
is computed with as its declared type allows, in Rust field by field where that is of the same file.
Where results that take work stand beside a constant or an argument that is handed on, only the
former are bent: what is noticed is then the work, and not a way around it.

A text that does not compile was no mutant: who runs them goes on to the next.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ralphloop.core.mutation import ChangedPiece, Edit, Mutant, Operator
from ralphloop.proof.java import BEND_IN_JAVA
from ralphloop.proof.python import AS_BEFORE, NOTHING, OTHERWISE
from ralphloop.proof.spans import Lines, edited

if TYPE_CHECKING:
    from tree_sitter import Node

EXTRA = "ralphloop[mutants]"
_DEEPEST = 400
_RAISED = "fails with an error of ours"
MARK = "ralph"

_BEND_IN_JAVASCRIPT = """
;function __ralphNothing(v%(any)s)%(any)s {
  if (v && typeof v.then === "function") return v.then(__ralphNothing);
  if (v !== undefined) throw new Error("ralph");
}
function __ralphBend(v%(any)s, d%(any)s = 3)%(any)s {
  if (typeof v === "boolean") return !v;
  if (typeof v === "number") return v === -1 ? v - 1 : v + 1;
  if (typeof v === "bigint") return v + v / v;
  if (typeof v === "string") return v + "ralph";
  if (v === null || v === undefined) return "ralph";
  if (d === 0 || typeof v === "symbol") return v;
  if (typeof v === "function") {
    if (/^class\\b/.test(Function.prototype.toString.call(v))) return v;
    const called = function (%(this)s...a%(any)s) { return __ralphBend(v.apply(this, a)); };
    return Object.assign(called, v);
  }
  if (typeof v.then === "function") return v.then((w%(any)s) => __ralphBend(w, d));
  if (Array.isArray(v)) {
    const all = v.map((w%(any)s) => __ralphBend(w, d - 1));
    return all.concat(all.length ? [all[all.length - 1]] : ["ralph"]);
  }
  if (v instanceof Date) return new Date(v.getTime() + 86400000);
  if (v instanceof Map) {
    return new Map([...v].map(([k, w]%(pair)s) => [k, __ralphBend(w, d - 1)]%(pair)s));
  }
  if (v instanceof Set) {
    return new Set([...v].map((w%(any)s) => __ralphBend(w, d - 1)).concat(["ralph"]));
  }
  if (v instanceof Error || v instanceof RegExp) return v;
  if (typeof v[Symbol.asyncIterator] === "function") {
    return (async function* () { for await (const w of v) yield __ralphBend(w, d - 1); })();
  }
  if (typeof v.next === "function") {
    return (function* () { for (const w of v) yield __ralphBend(w, d - 1); })();
  }
  const other%(any)s = Object.create(Object.getPrototypeOf(v));
  for (const k of Object.keys(v)) other[k] = __ralphBend(v[k], d - 1);
  if (!Object.keys(v).length) other.ralph = "ralph";
  return other;
}
"""


_BEND_IN_GO = """

func ralphBend[T any](v T) T {
	at := ralphreflect.ValueOf(&v).Elem()
	if !ralphAlter(at, 3) && !at.IsZero() {
		panic("ralph: it cannot be altered")
	}
	return v
}

func ralphAlter(v ralphreflect.Value, depth int) bool {
	if depth < 0 || v.Type().PkgPath() == "sync" {
		return false
	}
	switch v.Kind() {
	case ralphreflect.Bool:
		v.SetBool(!v.Bool())
	case ralphreflect.Int, ralphreflect.Int8, ralphreflect.Int16, ralphreflect.Int32,
		ralphreflect.Int64:
		v.SetInt(v.Int() + 1)
	case ralphreflect.Uint, ralphreflect.Uint8, ralphreflect.Uint16, ralphreflect.Uint32,
		ralphreflect.Uint64:
		v.SetUint(v.Uint() + 1)
	case ralphreflect.Float32, ralphreflect.Float64:
		v.SetFloat(v.Float() + 1)
	case ralphreflect.String:
		v.SetString(v.String() + "ralph")
	case ralphreflect.Struct:
		altered := false
		for i := 0; i < v.NumField(); i++ {
			if v.Type().String() == "time.Time" && i != 1 {
				continue
			}
			f := v.Field(i)
			f = ralphreflect.NewAt(f.Type(), ralphunsafe.Pointer(f.UnsafeAddr())).Elem()
			altered = ralphAlter(f, depth-1) || altered
		}
		return altered
	case ralphreflect.Ptr:
		if v.IsNil() {
			return false
		}
		other := ralphreflect.New(v.Type().Elem())
		other.Elem().Set(v.Elem())
		v.Set(other)
		return ralphAlter(other.Elem(), depth)
	case ralphreflect.Slice:
		other := ralphreflect.MakeSlice(v.Type(), v.Len(), v.Len())
		ralphreflect.Copy(other, v)
		altered := false
		for i := 0; i < other.Len(); i++ {
			altered = ralphAlter(other.Index(i), depth-1) || altered
		}
		if !altered {
			other = ralphreflect.Append(other, ralphreflect.Zero(v.Type().Elem()))
		}
		v.Set(other)
	case ralphreflect.Map:
		if v.IsNil() {
			return false
		}
		other := ralphreflect.MakeMap(v.Type())
		altered := false
		for _, key := range v.MapKeys() {
			one := ralphreflect.New(v.Type().Elem()).Elem()
			one.Set(v.MapIndex(key))
			altered = ralphAlter(one, depth-1) || altered
			other.SetMapIndex(key, one)
		}
		v.Set(other)
		return altered
	default:
		return false
	}
	return true
}
"""
_IMPORTED_IN_GO = '; import ralphreflect "reflect"; import ralphunsafe "unsafe"'


def _behind(*, typed: bool) -> str:
    """The function that bends, with or without types."""
    words = {"any": "", "pair": "", "this": ""}
    if typed:
        words = {"any": ": any", "pair": " as any", "this": "this: any, "}
    text = _BEND_IN_JAVASCRIPT.replace("([k, w]%(pair)s)", "([k, w]%(any)s)")
    return text % words


class NoGrammar(ValueError):
    """The grammar of a language is not installed."""


Fields = Mapping[str, Mapping[str, str]]  # types of a file: each field's own, by its name
# Of an expression, its declared type and the types of the file; empty: it cannot be.
Bend = Callable[[str, str, Fields], str]


class Grammar(NamedTuple):
    """What is known of one language."""

    name: str
    load: Callable[[], object]
    functions: tuple[str, ...]
    scopes: tuple[str, ...]  # kinds with a name that stands before that of a function in them
    type_field: str
    bend: Bend
    behind: str = ""  # goes to the end of the file
    fails: str = ""  # the first statement of a body that fails
    is_compiled: bool = False  # a test with a name that is not there takes all others with it
    before: str = ""  # goes to the begin of the file, with what goes to its end


_KINDS_OF_FUNCTION = (
    "function_declaration function_expression arrow_function method_definition"
    " generator_function_declaration generator_function"
).split()
_WHOLE = frozenset("int int8 int16 int32 int64 uint uint8 uint16 uint32 uint64 byte rune".split())
_OPAQUE_IN_GO = frozenset(("error", "any", "interface{}"))
_BOXED_IN_JAVA = {"char": "Character", "short": "Short", "byte": "Byte"}
_RUST_WHOLE = frozenset("i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize".split())


def _in_javascript(expression: str, _type: str, _fields: Fields) -> str:
    return f"__ralphBend(({expression}))"


def _in_go(expression: str, declared: str, _fields: Fields) -> str:
    if declared in _WHOLE or declared in ("float32", "float64"):
        return f"({expression}) + 1"
    if declared == "string":
        return f'({expression}) + "{MARK}"'
    if declared == "bool":
        return f"!({expression})"
    if not declared or declared in _OPAQUE_IN_GO or declared.startswith(("func", "chan", "<-")):
        return ""
    return f"ralphBend[{declared}]({expression})"


def _in_rust(expression: str, declared: str, fields: Fields) -> str:
    return (
        _plain_in_rust(expression, declared)
        or _held_in_rust(expression, declared, fields)
        or _own_in_rust(expression, declared, fields.get(declared, {}))
    )


def _plain_in_rust(expression: str, declared: str) -> str:
    """Numbers, truth values and texts."""
    if declared in _RUST_WHOLE or declared in ("f32", "f64"):
        one = "1" if declared in _RUST_WHOLE else "1.0"
        return f"({expression}) + {one}"
    if declared == "bool":
        return f"!({expression})"
    if declared == "String":
        return f'format!("{{}}{MARK}", {{ {expression} }})'
    if declared.startswith("&") and declared.endswith("str"):
        return f'{{ let _: {declared} = {expression}; "{MARK}" }}'
    if declared.rpartition("::")[2] in ("OsString", "PathBuf"):
        return f'{{ let mut v: {declared} = {expression}; v.push("{MARK}"); v }}'
    return ""


def _held_in_rust(expression: str, declared: str, fields: Fields) -> str:
    """Types that hold others."""
    if declared.startswith("(") and declared.endswith(")"):
        return _tuple_in_rust(expression, declared)
    kind, _, rest = declared.partition("<")
    kind = kind.rpartition("::")[2]
    first = _first_type(rest[:-1])
    if kind == "Vec" and rest:
        return f"{{ let mut v: {declared} = {expression}; v.pop(); v }}"
    if kind in ("HashMap", "BTreeMap") and rest:
        value = _first_type(rest[:-1].strip()[len(first) :].lstrip(" ,"))
        bent = _in_rust("w.clone()", value, {})
        given = f"for w in v.values_mut() {{ *w = {bent}; }}"
        return f"{{ let mut v: {declared} = {expression}; {given} v }}" if bent else ""
    if kind in ("Option", "Result") and rest:
        bent = _in_rust("v", first, fields)
        # What an expression alone would leave open, a name with its type says.
        return f"{{ let v: {declared} = {expression}; v.map(|v| {bent}) }}" if bent else ""
    return ""


def _own_in_rust(expression: str, declared: str, known: Mapping[str, str]) -> str:
    """Types of the same file."""
    if _UNITS in known:
        return _other_unit_in_rust(expression, declared, known[_UNITS].split())
    return _fields_in_rust(expression, declared, known)


def _tuple_in_rust(expression: str, declared: str) -> str:
    """A tuple whose first part that can be is another."""
    rest = declared[1:-1]
    place = 0
    while rest:
        kind = _first_type(rest)
        if bent := _in_rust(f"v.{place}", kind, {}):
            return f"{{ let mut v: {declared} = {expression}; v.{place} = {bent}; v }}"
        rest = rest.strip()[len(kind) :].lstrip(" ,")
        place += 1
    return ""


def _other_unit_in_rust(expression: str, declared: str, names: Sequence[str]) -> str:
    """The next one of an enum's names, in a circle; what holds something stays as it is."""
    turned = zip(names, (*names[1:], names[0]), strict=True)
    arms = " ".join(f"{declared}::{one} => {declared}::{other}," for one, other in turned)
    rest = "#[allow(unreachable_patterns)] v => v"
    return f"{{ let v: {declared} = {expression}; match v {{ {arms} {rest} }} }}"


def _fields_in_rust(expression: str, declared: str, fields: Mapping[str, str]) -> str:
    parts = {name: _in_rust(f"v.{name}", kind, {}) for name, kind in fields.items()}
    given = " ".join(f"v.{name} = {part};" for name, part in parts.items() if part)
    return f"{{ let mut v: {declared} = {expression}; {given} v }}" if given else ""


def _first_type(types: str) -> str:
    depth = 0
    for at, letter in enumerate(types):
        if letter in "<([":
            depth += 1
        elif letter in ">)]":
            depth -= 1
        elif letter == "," and depth == 0:
            return types[:at].strip()
    return types.strip()


def _in_java(expression: str, declared: str, _fields: Fields) -> str:
    if declared in ("int", "long", "double", "float"):
        return f"({expression}) + 1"
    if declared == "String":
        return f'({expression}) + "{MARK}"'
    if declared in ("boolean", "Boolean"):
        return f"!({expression})"
    if not declared or declared == "void":
        return ""
    # With its type said, an expression that is open (`List.of()`, a lambda) means what it meant.
    return f"RalphBend.<{_BOXED_IN_JAVA.get(declared, declared)}>ralphBend({expression})"


def _load_javascript() -> object:
    import tree_sitter_javascript

    return tree_sitter_javascript.language()


def _load_typescript() -> object:
    import tree_sitter_typescript

    return tree_sitter_typescript.language_typescript()


def _load_tsx() -> object:
    import tree_sitter_typescript

    return tree_sitter_typescript.language_tsx()


def _load_go() -> object:
    import tree_sitter_go

    return tree_sitter_go.language()


def _load_rust() -> object:
    import tree_sitter_rust

    return tree_sitter_rust.language()


def _load_java() -> object:
    import tree_sitter_java

    return tree_sitter_java.language()


_JAVASCRIPT = Grammar(
    "JavaScript",
    _load_javascript,
    tuple(_KINDS_OF_FUNCTION),
    ("class_declaration", "class"),
    "return_type",
    _in_javascript,
    _behind(typed=False),
    f'throw new Error("{MARK}");',
)
_TYPESCRIPT = _JAVASCRIPT._replace(
    name="TypeScript",
    load=_load_typescript,
    behind=_behind(typed=True),
    before="// @ts-nocheck\n",  # unused names are errors in some projects
)
_GO = Grammar(
    "Go",
    _load_go,
    ("function_declaration", "method_declaration"),
    (),
    "result",
    _in_go,
    _BEND_IN_GO,
    f'panic("{MARK}");',
    is_compiled=True,
)
_RUST = Grammar(
    "Rust",
    _load_rust,
    ("function_item",),
    ("mod_item", "impl_item", "trait_item"),
    "return_type",
    _in_rust,
    "",
    f'if true {{ panic!("{MARK}"); }}',
    is_compiled=True,
)
_JAVA = Grammar(
    "Java",
    _load_java,
    ("method_declaration",),
    ("class_declaration", "interface_declaration", "enum_declaration", "record_declaration"),
    "type",
    _in_java,
    BEND_IN_JAVA,
    f'if (true) throw new RuntimeException("{MARK}");',
    is_compiled=True,
)
GRAMMARS = {
    ".js": _JAVASCRIPT,
    ".jsx": _JAVASCRIPT,
    ".cjs": _JAVASCRIPT,
    ".mjs": _JAVASCRIPT,
    ".ts": _TYPESCRIPT,
    ".mts": _TYPESCRIPT,
    ".cts": _TYPESCRIPT,
    ".tsx": _TYPESCRIPT._replace(load=_load_tsx),
    ".go": _GO,
    ".rs": _RUST,
    ".java": _JAVA,
}


def grammar_of(path: str) -> Grammar | None:
    """The grammar of a file by its name; None where there is none."""
    return GRAMMARS.get(path[path.rfind(".") :]) if "." in path else None


def pieces_of_tree(path: str, old: bytes | None, new: bytes) -> tuple[ChangedPiece, ...]:
    """The functions that a story added or changed in one file, each with its mutants.

    Raises NoGrammar where the extra is not installed.
    """
    grammar = grammar_of(path)
    if grammar is None:
        return ()
    known = dict(functions_of(grammar, old)) if old is not None else {}
    found = list[ChangedPiece]()
    lines = Lines(new)
    maker = _Maker(grammar, lines)
    for name, node in functions_of(grammar, new):
        before = known.get(name)
        if before is not None and before.text == node.text:
            continue
        made = maker.mutants(node, before)
        if made:
            found.append(
                ChangedPiece(
                    path=path,
                    name=f"{name.partition(' ')[0]}()",
                    line=lines.position(node.start_byte).line,
                    last_line=lines.position(node.end_byte).line,
                    is_added=before is None,
                    returns=any(it.operator is Operator.BEND for it in made),
                    mutants=tuple(made),
                )
            )
    return tuple(found)


class Hollow(NamedTuple):
    """A new file with its functions as they were, and nothing in those that came with it."""

    text: bytes
    functions: frozenset[str]  # that came, by their own names
    is_compiled: bool


def hollowed(path: str, old: bytes | None, new: bytes) -> Hollow | None:
    """The file with what came with it there and empty, so that what uses it can be loaded.

    None where its language is not known.  Raises NoGrammar where the extra is not installed.
    """
    grammar = grammar_of(path)
    if grammar is None:
        return None
    known = dict(functions_of(grammar, old)) if old is not None else {}
    maker = _Maker(grammar, Lines(new))
    edits = list[Edit]()
    came = set[str]()
    for name, node in functions_of(grammar, new):
        before = known.get(name)
        if before is None:
            came.add(name.partition(" ")[0].rpartition(".")[2])
            edits += maker.emptied(node)
        elif before.text != node.text:
            edits.append(maker.undone(node, before))
    return Hollow(edited(new, _outermost(edits)), frozenset(came), grammar.is_compiled)


def _outermost(edits: Sequence[Edit]) -> Iterator[Edit]:
    """Those that stand in no other one: a function may hold others."""
    last = (0, 0)
    for one in sorted(edits, key=lambda it: (it.line, it.column)):
        if (one.line, one.column) >= last:
            yield one
            last = (one.last_line, one.last_column)


def parsed_tree(grammar: Grammar, source: bytes) -> "Node":
    try:
        import tree_sitter

        language = tree_sitter.Language(grammar.load())
    except ImportError as error:
        raise NoGrammar(f"for {grammar.name} `pip install {EXTRA}`") from error
    return tree_sitter.Parser(language).parse(source).root_node


def functions_of(grammar: Grammar, source: bytes) -> Iterator[tuple[str, "Node"]]:
    """Every function with a name and a body; one that is there several times has a number."""
    seen: dict[str, int] = {}
    waiting: list[tuple[str, Node, int]] = [("", parsed_tree(grammar, source), 0)]
    while waiting:
        scope, node, depth = waiting.pop()
        inner = scope
        if node.type in grammar.scopes:
            name = node.child_by_field_name("name") or node.child_by_field_name("type")
            if name is not None:
                inner = f"{scope}{text_of(name)}."
            if text_of(name) in ("tests", "test"):
                continue  # a module of tests among the code
        elif node.type in grammar.functions or _is_given_in_go(node):
            name_of = _name(node)
            if name_of and node.child_by_field_name("body") is not None and not _is_test(node):
                key = f"{scope}{name_of}"
                seen[key] = seen.get(key, 0) + 1
                yield f"{key} {seen[key]}", node
        if depth < _DEEPEST:
            waiting.extend((inner, child, depth + 1) for child in reversed(node.named_children))


def text_of(node: "Node | None") -> str:
    return (node.text or b"").decode("utf-8", "replace") if node is not None else ""


def _name(node: "Node") -> str:
    """Of a function: its own, or that of what it is given to."""
    if own := node.child_by_field_name("name"):
        return text_of(own)
    parent = node.parent
    if parent is not None and parent.type == "expression_list":
        parent = parent.parent
    if parent is None:
        return ""
    for field in ("name", "left", "key"):
        if found := parent.child_by_field_name(field):
            return text_of(found) if len(text_of(found)) < 80 else ""
    return "default" if parent.type == "export_statement" else ""


def _is_given_in_go(node: "Node") -> bool:
    """Whether a function of Go stands outside of all others: tests put another in its place."""
    if node.type != "func_literal":
        return False
    above = node.parent
    while above is not None and above.type in ("expression_list", "var_spec", "var_spec_list"):
        above = above.parent
    if above is None or above.type != "var_declaration" or above.parent is None:
        return False
    return above.parent.type == "source_file"


def _is_test(node: "Node") -> bool:
    before = node.prev_named_sibling
    return before is not None and before.type == "attribute_item" and "test" in text_of(before)


class _Maker:
    """Makes the mutants of one function.

    Places come from offsets: the points of a node crash Python in one version of tree-sitter.
    """

    def __init__(self, grammar: Grammar, lines: Lines) -> None:
        self.grammar = grammar
        self.source = lines.source
        self.lines = lines
        self.fields = _fields_of(grammar, lines.source)

    def undone(self, node: "Node", before: "Node") -> Edit:
        """A function as it was."""
        return self._instead(node, text_of(before))

    def emptied(self, node: "Node") -> list[Edit]:
        """A function that fails when it is called; in Go that would end all tests: zero instead."""
        text = self.grammar.fails
        if self.grammar is _GO:
            zeros = [f"*new({kind})" for kind in _results_of(node)]
            text = f"return {', '.join(zeros)};" if zeros else "return;"
        edit = self._at_the_start(node, f"{text} ")
        body = node.child_by_field_name("body")
        if edit is None and body is not None:  # an arrow to an expression
            edit = self._instead(body, f"(() => {{ {text} }})()")
        return [edit] if edit is not None else []

    def mutants(self, node: "Node", before: "Node | None") -> list[Mutant]:
        found = list[Mutant]()
        line = self.lines.position(node.start_byte).line
        if before is not None:
            edits: tuple[Edit, ...] = (self.undone(node, before),)
            found.append(Mutant(operator=Operator.UNDO, what=AS_BEFORE, edits=edits, line=line))
        results = list(returned_by(self.grammar, node))
        is_void = self._is_void(node)
        if is_void:
            results = []
        work = [one for one in results if not self._is_easy(one, node)] or results
        bent = list[Edit]()
        if work and not self._is_always_the_same(results):
            bent = self._bent(node, work)
        if not bent and (edit := self._written_before(node)):
            bent = [edit]
        if bent:
            edits = tuple(bent)
            found.append(Mutant(operator=Operator.BEND, what=OTHERWISE, edits=edits, line=line))
            found += self._for_nothing(node, results, line)
        elif not results and not self._has_value(node):
            edit = self._at_the_start(node, "return; ")
            body = node.child_by_field_name("body")
            if edit is None and is_void and body is not None:
                edit = self._instead(body, "void 0")
            if edit is not None and b"super(" not in (node.text or b""):
                edits = (edit,)
                found.append(Mutant(operator=Operator.EMPTY, what=NOTHING, edits=edits, line=line))
        if edit := self._at_the_start(node, f"{self.grammar.fails} "):
            found.append(Mutant(operator=Operator.RAISE, what=_RAISED, edits=(edit,), line=line))
        return found

    def _is_void(self, node: "Node") -> bool:
        """Whether a function of TypeScript is declared to return nothing."""
        declared = text_of(node.child_by_field_name("return_type")).strip(": ")
        return bool(self.grammar.behind) and declared in ("void", "Promise<void>")

    def _for_nothing(self, node: "Node", results: Sequence["Node"], line: int) -> Iterator[Mutant]:
        """Where a script hands on what a call gives, which may be nothing: without the call.

        What the probe shows decides whether that counts: nobody can say it by the text.
        """
        is_script = "__ralph" in self.grammar.behind
        if not is_script or not results or not all(_is_call(one) for one in results):
            return
        wrapped = [self._instead(it, f"__ralphNothing(({text_of(it)}))") for it in results]
        probe = (*wrapped, *self._our_functions())
        yield Mutant(operator=Operator.PROBE, what=_RAISED, edits=probe, line=line)
        gone = tuple(self._instead(it, "void 0") for it in results)
        yield Mutant(operator=Operator.EMPTY, what=NOTHING, edits=gone, line=line)

    def _has_value(self, node: "Node") -> bool:
        """Whether the language insists on a result that we found no way to alter."""
        return self.grammar is _RUST and node.child_by_field_name("return_type") is not None

    def _written_before(self, node: "Node") -> Edit | None:
        """A function of Rust whose result is what it writes, as `Display` has: a mark before it."""
        if self.grammar is not _RUST:
            return None
        given = _FORMATTER.search(text_of(node.child_by_field_name("parameters")))
        returns = text_of(node.child_by_field_name("return_type"))
        if given is None or not returns.endswith("Result"):
            return None
        return self._at_the_start(node, f'{given[1]}.write_str("{MARK}")?; ')

    def _is_easy(self, result: "Node", function: "Node") -> bool:
        """A constant, or an argument as it came."""
        if result.type in ("identifier", "expression_list"):
            given = function.child_by_field_name("parameters")
            words = text_of(given).replace(",", " ").replace("(", " ").replace(")", " ")
            return text_of(result) in words.replace(":", " ").split()
        return _is_constant(result)

    def _is_always_the_same(self, results: Sequence["Node"]) -> bool:
        are_constants = all(_is_constant(one) for one in results)
        return are_constants and len({text_of(one) for one in results}) == 1

    def _bent(self, node: "Node", results: Sequence["Node"]) -> list[Edit]:
        declared = text_of(node.child_by_field_name(self.grammar.type_field)).removeprefix("->")
        declared = declared.strip()
        if self.grammar is _RUST:
            declared = _named_type(node, declared)
        found = list[Edit]()
        for one in results:
            parts = one.named_children if one.type == "expression_list" else [one]
            types = _results_of(node) if self.grammar is _GO else [declared]
            if len(parts) != len(types):
                continue  # what another function returns is handed on as a whole
            for part, kind in zip(parts, types, strict=False):
                if other := self.grammar.bend(text_of(part), kind, self.fields):
                    found.append(self._instead(part, other))
                    break
        uses_ours = any("ralphBend" in one.text for one in found)
        if uses_ours and self.grammar is _GO:
            found += self._imported()
        if uses_ours and self.grammar.behind:
            found += self._our_functions()
        return found

    def _our_functions(self) -> Iterator[Edit]:
        """At the end of the file; what goes to its begin is told last, so that it stands first."""
        last = self.source.splitlines()[-1] if self.source.strip() else b""
        line = len(self.source.splitlines())
        column = len(last)
        text = self.grammar.behind
        yield Edit(line=line, column=column, last_line=line, last_column=column, text=text)
        if text := self.grammar.before:
            yield Edit(line=1, column=0, last_line=1, last_column=0, text=text)

    def _imported(self) -> Iterator[Edit]:
        """What our function of Go needs, behind the name of the package."""
        told = re.search(rb"^package[ \t]+\w+", self.source, re.MULTILINE)
        if told is not None:
            line, column = self.lines.position(told.end())
            text = _IMPORTED_IN_GO
            yield Edit(line=line, column=column, last_line=line, last_column=column, text=text)

    def _at_the_start(self, node: "Node", text: str) -> Edit | None:
        body = node.child_by_field_name("body")
        if body is None or not body.type.endswith("block"):
            return None
        line, column = self.lines.position(body.start_byte + 1)
        return Edit(line=line, column=column, last_line=line, last_column=column, text=f" {text}")

    def _instead(self, node: "Node", text: str) -> Edit:
        begin = self.lines.position(node.start_byte)
        end = self.lines.position(node.end_byte)
        return Edit(
            line=begin.line,
            column=begin.column,
            last_line=end.line,
            last_column=end.column,
            text=text,
        )


_WITHOUT_NAMES = ("closure_expression", "func_literal", "lambda_expression")


def returned_by(grammar: Grammar, node: "Node") -> Iterator["Node"]:
    """The expressions that a function returns, but those of functions inside it."""
    body = node.child_by_field_name("body")
    if body is None:
        return
    if not body.type.endswith("block"):  # an arrow to an expression
        yield body
        return
    if grammar is _RUST and (last := _last(body)) is not None:
        yield last
    waiting = [body]
    while waiting:
        one = waiting.pop()
        if one.type in ("return_statement", "return_expression"):
            if one.named_children:
                yield one.named_children[0]
            continue
        if one.type not in (*grammar.functions, *_WITHOUT_NAMES):
            waiting.extend(reversed(one.named_children))


def _results_of(node: "Node") -> list[str]:
    """The types that a function of Go returns, one by one."""
    result = node.child_by_field_name("result")
    if result is None or result.type != "parameter_list":
        return [text_of(result)] if result is not None else []
    found = list[str]()
    for one in result.named_children:
        names = one.children_by_field_name("name")
        found += [text_of(one.child_by_field_name("type"))] * max(1, len(names))
    return found


def _fields_of(grammar: Grammar, source: bytes) -> Fields:
    """The types of a file of Rust with their fields, and the names of enums that hold nothing."""
    if grammar is not _RUST:
        return {}
    found: dict[str, dict[str, str]] = {}
    for one in parsed_tree(grammar, source).named_children:
        body = one.child_by_field_name("body")
        if body is None or one.child_by_field_name("type_parameters"):
            continue
        name = text_of(one.child_by_field_name("name"))
        if one.type == "enum_item":
            units = [it for it in body.named_children if it.type == "enum_variant"]
            plain = [text_of(it) for it in units if len(it.named_children) == 1]
            if len(plain) > 1:
                found[name] = {_UNITS: " ".join(plain)}
        elif one.type == "struct_item" and body.type == "ordered_field_declaration_list":
            types = [it for it in body.named_children if it.type not in _BESIDE_TYPES]
            found[name] = {str(place): text_of(it) for place, it in enumerate(types)}
        elif one.type == "struct_item":
            fields = [it for it in body.named_children if it.type == "field_declaration"]
            found[name] = {
                text_of(it.child_by_field_name("name")): text_of(it.child_by_field_name("type"))
                for it in fields
            }
    return found


_UNITS = "enum"  # what stands for the field of an enum: no field can be called so
_BESIDE_TYPES = frozenset({"visibility_modifier", "attribute_item", "line_comment"})
_FORMATTER = re.compile(r"(\w+): &mut [\w:]*Formatter\b")


def _named_type(node: "Node", declared: str) -> str:
    """A type of Rust in which what the implementation calls its own has its name."""
    parent = node.parent.parent if node.parent else None
    if "Self" not in declared or parent is None:
        return declared
    for name in set(re.findall(r"Self::(\w+)", declared)):
        if told := re.search(rf"type {name} = ([^;\n]{{1,100}});", text_of(parent)):
            declared = declared.replace(f"Self::{name}", told[1])
    owner = text_of(parent.child_by_field_name("type")) if parent.type == "impl_item" else ""
    return re.sub(r"\bSelf\b(?!::)", owner, declared) if owner else declared


def _last(body: "Node") -> "Node | None":
    """The expression whose value a block has."""
    children = body.named_children
    if not children:
        return None
    last = children[-1]
    if last.type == "expression_statement" and not text_of(last).endswith(";"):
        last = last.named_children[0]  # `if` and `match` have a value, too
    is_value = not last.type.endswith(("_statement", "_declaration", "_item", "comment"))
    return last if is_value else None


def _is_call(node: "Node") -> bool:
    """A call, perhaps one that is waited for."""
    inner = node.named_children[0] if node.type == "await_expression" else node
    return inner.type == "call_expression"


def _is_constant(node: "Node") -> bool:
    kinds = ("true", "false", "null", "nil", "undefined", "none", "number", "string")
    return node.type in kinds or node.type.endswith("literal")
