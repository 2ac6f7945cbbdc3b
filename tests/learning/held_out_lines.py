"""More lines and stories, in projects that the selection was not made with: they are only measured."""

from __future__ import annotations

from tests.learning.line_cases import Layout, Line

KOTLIN = Layout(
    "a Kotlin service",
    {
        "src/main/kotlin/shop/Basket.kt": "package shop\n\nclass Basket {\n    fun addItem(id: Int) {}\n}\n",
        "src/main/kotlin/shop/Coupon.kt": "package shop\n\nclass CouponPolicy {\n    fun applies(): Boolean = true\n}\n",
        "src/main/kotlin/mail/Mailer.kt": "package mail\n\nclass Mailer {\n    fun sendReceipt() {}\n}\n",
        "src/test/kotlin/shop/BasketTest.kt": "package shop\n\nclass BasketTest\n",
        "src/test/kotlin/mail/MailerTest.kt": "package mail\n\nclass MailerTest\n",
        "build.gradle.kts": "plugins {}\n",
    },
    {
        "merge": {
            "title": "Merge equal items of a basket",
            "description": "addItem twice with one id should raise the amount.",
            "criteria": ("one row is left (seen: BasketTest)",),
        },
        "expire": {
            "title": "Coupons expire",
            "description": "CouponPolicy.applies is false after the last day.",
        },
        "receipt": {
            "title": "Send the receipt as text too",
            "touches": ("src/main/kotlin/mail/Mailer.kt",),
        },
    },
    (
        Line(
            "Basket keeps its items in the order of addItem; the page relies on it",
            ("merge",),
            ("src/main/kotlin/shop/Basket.kt",),
        ),
        Line("src/main/kotlin/shop/Coupon.kt compares days in UTC only", ("expire",)),
        Line(
            "CouponPolicy is a singleton, tests must reset it",
            ("expire",),
            ("src/main/kotlin/shop/Coupon.kt",),
        ),
        Line(
            "sendReceipt must not be called inside a transaction",
            ("receipt",),
            ("src/main/kotlin/mail/Mailer.kt",),
        ),
        Line("src/test/kotlin/mail/MailerTest.kt starts a server on port 2525", ("receipt",)),
        Line("Amounts are in cents everywhere", ("merge", "expire", "receipt"), by_person=True),
    ),
)
ELIXIR = Layout(
    "an Elixir application",
    {
        "lib/chat/room.ex": "defmodule Chat.Room do\n  def join(room, user) do\n    room\n  end\nend\n",
        "lib/chat/presence.ex": "defmodule Chat.Presence do\n  def track_user(user) do\n    user\n  end\nend\n",
        "lib/chat_web/router.ex": "defmodule ChatWeb.Router do\nend\n",
        "test/chat/room_test.exs": "defmodule Chat.RoomTest do\nend\n",
        "test/chat/presence_test.exs": "defmodule Chat.PresenceTest do\nend\n",
        "mix.exs": "defmodule Chat.MixProject do\nend\n",
    },
    {
        "limit": {
            "title": "Rooms hold fifty people",
            "criteria": ("the next one is refused (seen: test/chat/room_test.exs)",),
        },
        "idle": {
            "title": "Mark idle people",
            "description": "lib/chat/presence.ex should know who was silent for five minutes.",
        },
        "route": {"title": "A page for lost links", "touches": ("lib/chat_web/router.ex",)},
    },
    (
        Line("lib/chat/room.ex must stay free of database calls", ("limit",)),
        Line("test/chat/room_test.exs runs async, give every room its own name", ("limit",)),
        Line(
            "track_user monitors the process, so a crash untracks",
            ("idle",),
            ("lib/chat/presence.ex",),
        ),
        Line("lib/chat_web/router.ex matches from top to bottom, catch-all goes last", ("route",)),
        Line(
            "Every message people read goes through gettext",
            ("limit", "idle", "route"),
            by_person=True,
        ),
    ),
)
SCRIPTS = Layout(
    "scripts and data",
    {
        "scripts/backup.sh": "backup_all() {\n  tar c .\n}\n",
        "scripts/restore.sh": "restore_one() {\n  tar x\n}\n",
        "pipeline/clean.py": "def drop_empty(rows):\n    return rows\n",
        "pipeline/load.py": "def load_table(name):\n    return []\n",
        "pipeline/report.py": "from pipeline.load import load_table\n\n\ndef monthly(name):\n    return load_table(name)\n",
        "tests/test_clean.py": "from pipeline.clean import drop_empty\n",
        "tests/test_report.py": "from pipeline.report import monthly\n",
        "README.md": "# Data\n",
    },
    {
        "nightly": {
            "title": "Back up without the cache",
            "description": "scripts/backup.sh should leave .cache out.",
        },
        "rows": {
            "title": "Drop rows of blanks as well",
            "verify": ("python3", "-m", "pytest", "tests/test_clean.py"),
        },
        "month": {
            "title": "Report by month",
            "criteria": ("each month is a row (seen: tests/test_report.py::test_months)",),
        },
    },
    (
        Line("scripts/backup.sh runs under dash, no arrays", ("nightly",)),
        Line("backup_all is called by cron without HOME", ("nightly",), ("scripts/backup.sh",)),
        Line("drop_empty gets tuples, not lists", ("rows",), ("pipeline/clean.py",)),
        Line("pipeline/load.py caches tables for the life of the process", ("month",)),
        Line(
            "monthly() rounds down, the accountants want that", ("month",), ("pipeline/report.py",)
        ),
        Line("scripts/restore.sh needs an empty directory", ()),
        Line("Never print names of customers", ("nightly", "rows", "month"), by_person=True),
    ),
)
VUE = Layout(
    "a Vue front end",
    {
        "src/components/PriceTag.vue": "<script setup>\ndefineProps(['cents'])\n</script>\n",
        "src/components/SearchBox.vue": "<script setup>\n</script>\n",
        "src/stores/cart.ts": "export function useCart() {\n  return {}\n}\n",
        "src/api/client.ts": "export async function fetchPrices() {\n  return []\n}\n",
        "tests/PriceTag.spec.ts": "import PriceTag from '../src/components/PriceTag.vue'\n",
        "tests/cart.spec.ts": "import { useCart } from '../src/stores/cart'\n",
        "package.json": "{}\n",
    },
    {
        "currency": {
            "title": "Show the currency",
            "criteria": ("PriceTag shows a sign (seen: tests/PriceTag.spec.ts)",),
        },
        "empty": {
            "title": "An empty cart says so",
            "description": "useCart knows when it is empty.",
        },
        "retry": {
            "title": "Ask again when the network is away",
            "description": "fetchPrices tries three times.",
            "touches": ("src/api/client.ts",),
        },
    },
    (
        Line(
            "PriceTag.vue gets cents, never floats", ("currency",), ("src/components/PriceTag.vue",)
        ),
        Line("src/stores/cart.ts is shared between tabs by localStorage", ("empty",)),
        Line("fetchPrices must keep its AbortController", ("retry",), ("src/api/client.ts",)),
        Line("src/components/SearchBox.vue waits 300 ms before it asks", ()),
        Line("tests/cart.spec.ts needs a fresh pinia for every test", ("empty",)),
        Line(
            "No colours in components, only variables of the theme",
            ("currency", "empty", "retry"),
            by_person=True,
        ),
    ),
)
HELD_OUT = (KOTLIN, ELIXIR, SCRIPTS, VUE)
