"""Lines that were learned and stories they are about, or not, in projects of several languages.

Each project has its files, the lines that agents or people said while they worked there, and later
stories, written as people and planners write them.  A line names the stories it would help; to all
others of its project it is foreign.
"""

from __future__ import annotations

from typing import NamedTuple


class Line(NamedTuple):
    text: str
    about: tuple[str, ...]  # the stories it would help
    changed: tuple[str, ...] = ()  # what the attempt that said it had changed
    by_person: bool = False


class Layout(NamedTuple):
    name: str
    files: dict[str, str]
    stories: dict[str, dict[str, object]]
    lines: tuple[Line, ...]


PYTHON = Layout(
    "a flat package",
    {
        "boxes/__init__.py": "",
        "boxes/ioutils.py": "import codecs\n\nclass SpooledIOBase:\n    def tell(self):\n        return 0\n\n"
        "class SpooledStringIO(SpooledIOBase):\n    def seek(self, pos):\n        self._tell = pos\n\n"
        "class MultiFileReader:\n    pass\n",
        "boxes/strutils.py": "def bytes2human(nbytes, ndigits=0):\n    return str(nbytes)\n\n"
        "def slugify(text, delim='_'):\n    return text\n\nclass DeferredValue:\n    pass\n",
        "boxes/iterutils.py": "def chunked(src, size):\n    return []\n\ndef remap(root, visit=None):\n    return root\n",
        "boxes/cacheutils.py": "class LRI(dict):\n    pass\n\nclass LRU(LRI):\n    def _get_link(self):\n        pass\n",
        "boxes/timeutils.py": "def parse_timedelta(text):\n    return None\n",
        "tests/test_ioutils.py": "from boxes import ioutils\n\ndef test_reads():\n    assert ioutils\n",
        "tests/test_strutils.py": "from boxes import strutils\n",
        "tests/test_iterutils.py": "from boxes.iterutils import chunked\n",
        "tests/test_cacheutils.py": "import boxes.cacheutils as c\n",
        "tests/test_speed.py": "from boxes.iterutils import remap\n",
        "CHANGELOG.md": "# Changes\n",
        "docs/conf.py": "project = 'boxes'\n",
    },
    {
        "spool": {
            "title": "SpooledStringIO.seek counts code points",
            "description": "After reading a part, seek and tell disagree.",
            "touches": ("boxes/ioutils.py", "tests/test_ioutils.py", "CHANGELOG.md"),
        },
        "human": {
            "title": "Round up to the next unit",
            "criteria": (
                "1024 KiB is shown as 1.0M (seen: tests/test_strutils.py::test_next_unit)",
            ),
        },
        "chunks": {
            "title": "Let chunked() take a fill value",
            "criteria": ("chunked([1, 2, 3], 2, fill=0) gives [[1, 2], [3, 0]]",),
        },
        "cache": {
            "title": "Bounded caches can be copied",
            "verify": ("python", "-m", "pytest", "-q", "tests/test_cacheutils.py"),
        },
        "deltas": {
            "title": "Understand ISO durations",
            "description": "parse_timedelta should take PT1H as well.",
        },
        "speed": {
            "title": "Make the slow case fast",
            "description": "tests/test_speed.py takes a minute.",
        },
    },
    (
        Line(
            "the codec reader behind SpooledStringIO reads ahead, so its buffer has no useful position",
            ("spool",),
            ("boxes/ioutils.py",),
        ),
        Line(
            "MultiFileReader opens nothing before the first read",
            ("spool",),
            ("boxes/ioutils.py", "tests/test_ioutils.py"),
        ),
        Line(
            "doctests of boxes/strutils.py run with the suite, so examples have to be exact",
            ("human",),
            ("boxes/strutils.py",),
        ),
        Line("`bytes2human` is used by slugify's cousin only through DeferredValue", ("human",)),
        Line("chunked_iter and chunked share one validation in iterutils.py", ("chunks", "speed")),
        Line(
            "remap calls visit for the root as well", ("speed", "chunks"), ("boxes/iterutils.py",)
        ),
        Line("LRU links are lists of four, compare them by identity", ("cache",)),
        Line("timeutils.py has no dependency on dateutil, keep it so", ("deltas",)),
        Line("entries in CHANGELOG.md link the issue at the end of the line", ("spool",)),
        Line(
            "we support Python 3.8 here, so no match statements",
            ("spool", "human", "chunks", "cache", "deltas", "speed"),
            by_person=True,
        ),
    ),
)

SERVICE = Layout(
    "a service in src/",
    {
        "src/shop/__init__.py": "",
        "src/shop/api/orders.py": "class OrderView:\n    def post(self):\n        pass\n\ndef list_orders(cursor):\n    return []\n",
        "src/shop/api/customers.py": "def merge_customers(a, b):\n    return a\n",
        "src/shop/db/migrations/0003_orders.py": "revision = '0003'\n",
        "src/shop/db/session.py": "class UnitOfWork:\n    pass\n\nSESSION_LIMIT = 30\n",
        "src/shop/mail/render.py": "def render_invoice(order):\n    return ''\n",
        "src/shop/mail/templates/invoice.html": "<p></p>\n",
        "tests/api/test_orders.py": "from shop.api.orders import OrderView\n",
        "tests/api/test_customers.py": "from shop.api import customers\n",
        "tests/db/test_session.py": "from shop.db.session import UnitOfWork\n",
        "tests/mail/test_render.py": "from shop.mail.render import render_invoice\n",
        "pyproject.toml": "[project]\nname = 'shop'\n",
    },
    {
        "paging": {
            "title": "Page through orders",
            "description": "`list_orders` takes a cursor and gives the next one.",
            "verify": ("pytest", "-q", "tests/api/test_orders.py"),
        },
        "merge": {"title": "Merge two customers", "touches": ("src/shop/api/customers.py",)},
        "column": {
            "title": "Orders have a currency",
            "description": "A new migration in src/shop/db/migrations adds the column.",
        },
        "rollback": {
            "title": "A failed request leaves nothing behind",
            "criteria": (
                "UnitOfWork rolls back (seen: tests/db/test_session.py::test_rolls_back)",
            ),
        },
        "invoice": {"title": "Invoices show the tax", "notes": "see render_invoice"},
    },
    (
        Line(
            "OrderView answers 409 where the order is being paid; clients rely on it",
            ("paging",),
            ("src/shop/api/orders.py",),
        ),
        Line("cursors in src/shop/api/orders.py are signed, decode them first", ("paging",)),
        Line("merge_customers must not touch the newer address", ("merge",)),
        Line("migrations in src/shop/db/migrations are numbered and never edited", ("column",)),
        Line("UnitOfWork is entered once a request by the middleware", ("rollback",)),
        Line("session.py closes idle connections after SESSION_LIMIT seconds", ("rollback",)),
        Line(
            "src/shop/mail/templates/invoice.html is sent as is: no scripts, inline styles only",
            ("invoice",),
        ),
        Line("render_invoice runs in a worker without a database", ("invoice",)),
        Line(
            "money is counted in cents everywhere",
            ("paging", "merge", "column", "rollback", "invoice"),
            by_person=True,
        ),
        Line(
            "customers.py is rewritten next month, keep changes there small",
            ("merge",),
            by_person=True,
        ),
    ),
)

TYPESCRIPT = Layout(
    "a TypeScript monorepo",
    {
        "packages/core/src/parser.ts": "export class TokenStream {\n  next() { return null }\n}\n"
        "export function parseDate(text: string) {\n  return text\n}\n",
        "packages/core/src/format.ts": "export const formatMoney = (cents: number) => {\n  return '' + cents\n}\n",
        "packages/core/test/parser.test.ts": "import { parseDate } from '../src/parser'\n",
        "packages/core/test/format.spec.ts": "import { formatMoney } from '../src/format'\n",
        "packages/ui/src/components/DatePicker.tsx": "export function DatePicker() {\n  return null\n}\n",
        "packages/ui/src/components/Table.tsx": "export default class Table {\n  render() { return null }\n}\n",
        "packages/ui/src/hooks/useFilter.ts": "export function useFilter() {\n  return []\n}\n",
        "packages/ui/test/Table.test.tsx": "import Table from '../src/components/Table'\n",
        "packages/ui/test/filter.test.ts": "import { useFilter } from '../src/hooks/useFilter'\n",
        "package.json": "{}\n",
        "README.md": "# x\n",
    },
    {
        "dates": {
            "title": "Understand 'tomorrow'",
            "criteria": ("parseDate('tomorrow') gives the next day",),
        },
        "money": {
            "title": "Thousands are grouped",
            "verify": ("npx", "vitest", "run", "packages/core/test/format.spec.ts"),
        },
        "picker": {
            "title": "The date picker opens with the keyboard",
            "touches": ("packages/ui/src/components/DatePicker.tsx",),
        },
        "table": {
            "title": "Sort by any column",
            "description": "packages/ui/test/Table.test.tsx has the cases.",
        },
        "filter": {
            "title": "Filters survive a reload",
            "criteria": ("the address keeps them (seen: packages/ui/test/filter.test.ts)",),
        },
    },
    (
        Line("TokenStream never backtracks, so look ahead before you call next()", ("dates",)),
        Line("packages/core/src/parser.ts has no locale, pass it in", ("dates",)),
        Line("formatMoney gets cents and never rounds", ("money",)),
        Line("`DatePicker` is uncontrolled until value is set", ("picker",)),
        Line("Table.tsx keeps rows in a ref for speed, set state only for the header", ("table",)),
        Line(
            "useFilter reads the address once, at mount",
            ("filter",),
            ("packages/ui/src/hooks/useFilter.ts",),
        ),
        Line(
            "components in packages/ui/src/components take their texts from props",
            ("picker", "table"),
        ),
        Line(
            "vitest needs --run in scripts, else it waits",
            ("dates", "money", "picker", "table", "filter"),
            by_person=True,
        ),
    ),
)

GO = Layout(
    "a Go module",
    {
        "go.mod": "module example.com/relay\n",
        "cmd/relay/main.go": "package main\n\nfunc main() {\n}\n",
        "internal/queue/queue.go": "package queue\n\ntype Broker struct {\n}\n\nfunc (b *Broker) Drain() error {\n\treturn nil\n}\n",
        "internal/queue/queue_test.go": "package queue\n\nfunc TestDrain(t *testing.T) {\n}\n",
        "internal/auth/token.go": "package auth\n\nfunc VerifyToken(raw string) bool {\n\treturn true\n}\n",
        "internal/auth/token_test.go": "package auth\n",
        "internal/store/bolt.go": "package store\n\ntype BoltStore struct {\n}\n\nfunc OpenStore(path string) *BoltStore {\n\treturn nil\n}\n",
        "internal/store/bolt_test.go": "package store\n",
        "internal/config/load.go": "package config\n\nfunc LoadFile(path string) error {\n\treturn nil\n}\n",
    },
    {
        "drain": {
            "title": "Drain before shutdown",
            "description": "Broker.Drain waits for the last message.",
        },
        "expiry": {"title": "Tokens expire", "verify": ("go", "test", "./internal/auth/...")},
        "compact": {"title": "Compact the store at night", "touches": ("internal/store/**",)},
        "reload": {"title": "Reload settings on SIGHUP", "criteria": ("LoadFile is called again",)},
    },
    (
        Line("Broker holds its lock while it sends, so callbacks must not call back", ("drain",)),
        Line("internal/queue has a fake clock in queue_test.go", ("drain",)),
        Line("VerifyToken compares in constant time, keep hmac.Equal", ("expiry",)),
        Line("BoltStore must be closed before the file is moved", ("compact",)),
        Line("OpenStore retries for a second where the file is locked", ("compact",)),
        Line("LoadFile keeps unknown keys for later versions", ("reload",)),
        Line(
            "go vet runs in the checks, so copied locks fail",
            ("drain", "expiry", "compact", "reload"),
            by_person=True,
        ),
        Line(
            "internal/auth/token.go is reviewed by the security team, change it last",
            ("expiry",),
            by_person=True,
        ),
    ),
)

RUST = Layout(
    "a Rust workspace",
    {
        "Cargo.toml": "[workspace]\n",
        "crates/engine/src/lib.rs": "pub mod planner;\npub mod pool;\n",
        "crates/engine/src/planner.rs": "pub struct QueryPlan {\n}\n\npub fn plan_query(text: &str) -> QueryPlan {\n    QueryPlan {}\n}\n",
        "crates/engine/src/pool.rs": "pub trait PageCache {\n}\n\npub enum Eviction {\n}\n",
        "crates/engine/tests/planner.rs": "use engine::planner::plan_query;\n",
        "crates/engine/tests/pool.rs": "use engine::pool::PageCache;\n",
        "crates/cli/src/args.rs": "pub fn parse_args() {\n}\n",
        "crates/cli/src/main.rs": "mod args;\nfn main() {\n}\n",
    },
    {
        "joins": {
            "title": "Plan joins by size",
            "criteria": ("plan_query puts the small table first",),
        },
        "clock": {"title": "Evict by a clock", "verify": ("cargo", "test", "--test", "pool")},
        "flags": {"title": "Flags may be given twice", "touches": ("crates/cli/src/args.rs",)},
    },
    (
        Line("QueryPlan is serialised by users, so fields are only added", ("joins",)),
        Line("planner.rs is generic over the catalogue only in tests", ("joins",)),
        Line("a PageCache must never panic inside Drop", ("clock",)),
        Line("`Eviction` is non-exhaustive", ("clock",)),
        Line("parse_args exits by itself on --help", ("flags",)),
        Line("clippy runs with -D warnings", ("joins", "clock", "flags"), by_person=True),
    ),
)

JAVA = Layout(
    "a Maven project",
    {
        "pom.xml": "<project/>\n",
        "src/main/java/com/acme/billing/InvoiceService.java": "package com.acme.billing;\n\npublic class InvoiceService {\n  public Invoice createInvoice(Order order) {\n    return null;\n  }\n}\n",
        "src/main/java/com/acme/billing/TaxTable.java": "package com.acme.billing;\n\npublic interface TaxTable {\n}\n",
        "src/main/java/com/acme/users/UserRepository.java": "package com.acme.users;\n\npublic interface UserRepository {\n}\n",
        "src/main/java/com/acme/users/PasswordPolicy.java": "package com.acme.users;\n\npublic class PasswordPolicy {\n}\n",
        "src/test/java/com/acme/billing/InvoiceServiceTest.java": "package com.acme.billing;\n\nimport com.acme.billing.TaxTable;\n\nclass InvoiceServiceTest {\n}\n",
        "src/test/java/com/acme/users/PasswordPolicyTest.java": "package com.acme.users;\n\nclass PasswordPolicyTest {\n}\n",
    },
    {
        "credit": {
            "title": "Write credit notes",
            "verify": ("mvn", "-q", "test", "-Dtest=InvoiceServiceTest"),
        },
        "tax": {"title": "A reduced rate for books", "description": "TaxTable knows one rate."},
        "policy": {
            "title": "Refuse known passwords",
            "touches": ("src/main/java/com/acme/users/PasswordPolicy.java",),
        },
        "users": {"title": "Find users by mail", "criteria": ("UserRepository has findByMail",)},
    },
    (
        Line("InvoiceService is a singleton: no fields that change", ("credit",)),
        Line(
            "createInvoice numbers without gaps, so never inside a transaction that may fail",
            ("credit",),
        ),
        Line("TaxTable is loaded once at start, tests replace it with a stub", ("tax", "credit")),
        Line("PasswordPolicy is shared with the mobile app", ("policy",)),
        Line("UserRepository derives queries from method names", ("users",)),
        Line("the build runs on Java 17", ("credit", "tax", "policy", "users"), by_person=True),
    ),
)

RUBY = Layout(
    "a Rails application",
    {
        "Gemfile": "source 'x'\n",
        "app/models/subscription.rb": "class Subscription < ApplicationRecord\n  def renew!\n  end\nend\n",
        "app/models/plan.rb": "class Plan < ApplicationRecord\nend\n",
        "app/controllers/sessions_controller.rb": "class SessionsController < ApplicationController\n  def create\n  end\nend\n",
        "app/jobs/renewal_job.rb": "class RenewalJob < ApplicationJob\n  def perform(id)\n  end\nend\n",
        "spec/models/subscription_spec.rb": "require 'rails_helper'\n\nRSpec.describe Subscription do\nend\n",
        "spec/controllers/sessions_controller_spec.rb": "require 'rails_helper'\n\nRSpec.describe SessionsController do\nend\n",
        "spec/jobs/renewal_job_spec.rb": "RSpec.describe RenewalJob do\nend\n",
    },
    {
        "renew": {
            "title": "Renew a day early",
            "verify": ("bundle", "exec", "rspec", "spec/models/subscription_spec.rb"),
        },
        "login": {
            "title": "Remember who logged in",
            "touches": ("app/controllers/sessions_controller.rb",),
        },
        "retry": {
            "title": "A failed renewal is tried again",
            "description": "RenewalJob gives up after one error.",
        },
    },
    (
        Line("Subscription is touched by a trigger, so reload it after save", ("renew",)),
        Line("app/models/subscription.rb freezes prices at the first renewal", ("renew",)),
        Line("SessionsController must stay free of redirects, the app reads JSON", ("login",)),
        Line("RenewalJob is idempotent by its id argument", ("retry",)),
        Line("rubocop wants double quotes", ("renew", "login", "retry"), by_person=True),
    ),
)

CPP = Layout(
    "a C++ library",
    {
        "CMakeLists.txt": "project(ring)\n",
        "include/ring/ring_buffer.h": "namespace ring {\nclass RingBuffer {\n public:\n  bool push(int value);\n};\n}\n",
        "src/ring_buffer.cpp": '#include "ring/ring_buffer.h"\nnamespace ring {\nbool RingBuffer::push(int value) {\n  return true;\n}\n}\n',
        "include/ring/spin_lock.h": "struct SpinLock {\n  void lock();\n};\n",
        "src/spin_lock.cpp": '#include "ring/spin_lock.h"\nvoid SpinLock::lock() {\n}\n',
        "test/ring_buffer_test.cc": '#include "ring/ring_buffer.h"\nTEST(RingBuffer, Push) {\n}\n',
        "test/spin_lock_test.cc": '#include "ring/spin_lock.h"\n',
    },
    {
        "grow": {"title": "RingBuffer can grow", "criteria": ("push never fails below the limit",)},
        "fair": {"title": "Locks are fair", "description": "See test/spin_lock_test.cc."},
    },
    (
        Line("RingBuffer is used from an interrupt: no allocation in push", ("grow",)),
        Line("src/ring_buffer.cpp relies on sizes that are powers of two", ("grow",)),
        Line("SpinLock must not yield on the target", ("fair",)),
        Line("include/ring/spin_lock.h is included by C code", ("fair",)),
        Line("the target has no exceptions", ("grow", "fair"), by_person=True),
    ),
)

PHP = Layout(
    "a PHP application",
    {
        "composer.json": "{}\n",
        "src/Mailer/Transport.php": "<?php\nnamespace App\\Mailer;\n\nfinal class Transport {\n  public function deliver($m) {\n  }\n}\n",
        "src/Catalog/PriceList.php": "<?php\nnamespace App\\Catalog;\n\nclass PriceList {\n}\n",
        "src/Catalog/Importer.php": "<?php\nnamespace App\\Catalog;\n\nclass Importer {\n  public function importRow(array $row) {\n  }\n}\n",
        "tests/Mailer/TransportTest.php": "<?php\nuse App\\Mailer\\Transport;\n",
        "tests/Catalog/ImporterTest.php": "<?php\nuse App\\Catalog\\Importer;\nuse App\\Catalog\\PriceList;\n",
    },
    {
        "bounce": {
            "title": "Bounced mail is noticed",
            "verify": ("vendor/bin/phpunit", "tests/Mailer/TransportTest.php"),
        },
        "import": {"title": "Import semicolons", "criteria": ("importRow takes both",)},
        "prices": {"title": "Prices by country", "touches": ("src/Catalog/PriceList.php",)},
    },
    (
        Line("Transport is final on purpose, wrap it", ("bounce",)),
        Line("Importer commits every hundred rows", ("import",), ("src/Catalog/Importer.php",)),
        Line("PriceList is cached by the framework, clear it in tests", ("prices",)),
        Line("src/Mailer needs a queue in every environment but test", ("bounce",)),
        Line("we write strict_types in every file", ("bounce", "import", "prices"), by_person=True),
    ),
)

CSHARP = Layout(
    "a C# solution",
    {
        "Shop.sln": "x\n",
        "Shop.Core/Basket.cs": "namespace Shop.Core;\n\npublic class Basket\n{\n    public decimal Total()\n    {\n        return 0;\n    }\n}\n",
        "Shop.Core/Discount.cs": "namespace Shop.Core;\n\npublic record Discount(string Code);\n",
        "Shop.Web/Controllers/BasketController.cs": "namespace Shop.Web;\n\npublic class BasketController\n{\n}\n",
        "Shop.Tests/BasketTests.cs": "using Shop.Core;\n\npublic class BasketTests\n{\n}\n",
        "Shop.Tests/DiscountTests.cs": "using Shop.Core;\n",
    },
    {
        "total": {
            "title": "Round the total",
            "verify": ("dotnet", "test", "--filter", "BasketTests"),
        },
        "codes": {
            "title": "Codes ignore case",
            "description": "Shop.Tests/DiscountTests.cs has one case.",
        },
        "empty": {"title": "Show an empty basket", "criteria": ("BasketController answers 200",)},
    },
    (
        Line("Basket keeps lines sorted by product", ("total",)),
        Line("Discount is compared by value, so equal codes are one", ("codes",)),
        Line("BasketController must not be cached by the proxy", ("empty",)),
        Line("Shop.Core/Basket.cs is linked into the mobile app", ("total",)),
        Line(
            "warnings are errors in the release build", ("total", "codes", "empty"), by_person=True
        ),
    ),
)

DJANGO = Layout(
    "a Django project",
    {
        "manage.py": "import sys\n",
        "accounts/models.py": "class Membership:\n    def is_active(self):\n        return True\n",
        "accounts/tests/test_models.py": "from accounts.models import Membership\n",
        "accounts/views.py": "def signup_view(request):\n    return None\n",
        "reports/models.py": "class Snapshot:\n    pass\n",
        "reports/tasks.py": "def build_snapshot(day):\n    return None\n",
        "reports/tests/test_tasks.py": "from reports import tasks\n",
        "web/static/app.js": "export function drawChart(data) {\n}\n",
    },
    {
        "lapsed": {
            "title": "Members lapse after a year",
            "verify": ("python", "manage.py", "test", "accounts.tests.test_models"),
        },
        "nightly": {
            "title": "Snapshots are built at night",
            "criteria": ("build_snapshot is called (seen: reports/tests/test_tasks.py)",),
        },
        "chart": {"title": "Charts have a legend", "notes": "drawChart"},
        "signup": {
            "title": "Sign up with a code",
            "touches": ("accounts/views.py", "accounts/templates/**"),
        },
    },
    (
        Line("Membership.is_active looks at the trial as well", ("lapsed",)),
        Line("build_snapshot must be callable twice for one day", ("nightly",)),
        Line("reports/tasks.py runs without a request, so no current user", ("nightly",)),
        Line("drawChart is called again on resize", ("chart",)),
        Line("signup_view is rate limited by the proxy, tests disable nothing", ("signup",)),
        Line(
            "templates are in German, translate nothing",
            ("lapsed", "nightly", "chart", "signup"),
            by_person=True,
        ),
    ),
)

LAYOUTS = (PYTHON, SERVICE, TYPESCRIPT, GO, RUST, JAVA, RUBY, CPP, PHP, CSHARP, DJANGO)
