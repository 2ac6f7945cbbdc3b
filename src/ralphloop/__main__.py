"""The way in: what must be fast is answered before the command line framework is imported."""

import sys


def main() -> int:
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from ralphloop import __version__

        sys.stdout.write(f"ralph {__version__}\n")
        return 0
    if arguments[:1] == ["hook"]:
        from ralphloop.hook import entry

        if arguments[1:2] and arguments[1] in entry.EVENTS:
            return entry.main(arguments[1])
    from ralphloop.cli.main import run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
