// Writes down how the tests of a run ended, one JSON line each.
//
// NODE_OPTIONS=--require loads it into every Node process of a check.  It does nothing but in the
// process of a test runner, where it listens: jest's results are read where jest hands them over,
// mocha's runner is listened to, vitest gets one more reporter.  The command line that tests see is
// never changed.  node --test takes this file for a reporter.  What tests start does not see it.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const Module = require("node:module");

const out = process.env.REPORT_TESTS_TO;
const only = process.env.REPORT_TESTS_OF ? JSON.parse(process.env.REPORT_TESTS_OF) : null;
const apart = Boolean(process.env.REPORT_TESTS_APART);

function write(lines) {
  fs.appendFileSync(out, lines.map((line) => JSON.stringify(line) + "\n").join(""));
}

function named(file, titles) {
  return [...(file ? [path.relative(process.cwd(), file)] : []), ...titles].join(" > ");
}

function leaveNoTrace() {
  for (const name of ["REPORT_TESTS_TO", "REPORT_TESTS_OF", "REPORT_TESTS_APART"]) {
    delete process.env[name];
  }
  const options = (process.env.NODE_OPTIONS || "").split(`--require=${__filename}`).join("").trim();
  if (options) process.env.NODE_OPTIONS = options;
  else delete process.env.NODE_OPTIONS;
}

// --- jest ---------------------------------------------------------------------------------------

const JEST = { passed: "passed", failed: "failed" }; // all else did not run

function jestLines(results) {
  const lines = [];
  for (const file of results.testResults) {
    for (const test of file.testResults) {
      const why = (test.failureMessages || []).concat("")[0].slice(0, 200);
      const name = named(file.testFilePath, [...test.ancestorTitles, test.title]);
      lines.push([name, JEST[test.status] || "skipped", why]);
    }
    const broken = file.testExecError || (file.failureMessage && !file.testResults.length);
    if (broken) lines.push([named(file.testFilePath, []), "errors"]);
  }
  return lines;
}

function listenToJest(core) {
  const wrapped = Object.create(core, {
    runCLI: {
      enumerable: true,
      value: async (argv, projects) => {
        leaveNoTrace();
        const asked = { ...argv };
        if (apart) Object.assign(asked, { ci: true, bail: 0, coverage: false });
        if (only) {
          Object.assign(asked, { _: only, runTestsByPath: true });
          for (const name of Object.keys(asked)) {
            if (/^(onlyChanged|onlyFailures|changedSince|findRelatedTests|testPathPatterns?|lastCommit|o|f)$/.test(name)) {
              delete asked[name];
            }
          }
        }
        const ended = await core.runCLI(asked, projects);
        if (ended && ended.results) write([...jestLines(ended.results), "end"]);
        return ended;
      },
    },
  });
  return wrapped;
}

// --- mocha --------------------------------------------------------------------------------------

function listenToMocha(Mocha) {
  const { run, loadFiles, loadFilesAsync } = Mocha.prototype;
  const choose = (mocha) => {
    if (only) mocha.files = only.map((name) => path.resolve(name));
  };
  Mocha.prototype.loadFiles = function (...rest) {
    choose(this);
    return loadFiles.apply(this, rest);
  };
  Mocha.prototype.loadFilesAsync = function (...rest) {
    choose(this);
    return loadFilesAsync.apply(this, rest);
  };
  Mocha.prototype.run = function (...rest) {
    const Reporter = this._reporter;
    if (apart && this.options) this.options.bail = false;
    if (apart && this.suite) this.suite.bail(false);
    this._reporter = function (runner, options) {
      leaveNoTrace();
      const note = (test, ended, why) => {
        const titles = test.titlePath ? test.titlePath() : [test.fullTitle()];
        write([[named(test.file, titles), ended, String(why || "").slice(0, 200)]]);
      };
      runner.on("pass", (test) => note(test, "passed"));
      runner.on("pending", (test) => note(test, "skipped"));
      runner.on("fail", (test, error) => {
        note(test, test.type === "test" ? "failed" : "errors", error);
      });
      runner.once("end", () => write(["end"]));
      return new Reporter(runner, options);
    };
    return run.apply(this, rest);
  };
}

// --- node --test --------------------------------------------------------------------------------

const BEFORE = new Set(["hookFailed", "cancelledByParent"]);

async function* listenToNode(source) {
  const titles = [];
  const told = [];
  for await (const { type, data } of source) {
    if (type === "test:start") titles.splice(data.nesting, Infinity, data.name);
    if (type !== "test:pass" && type !== "test:fail") continue;
    const details = data.details || {};
    const error = details.error || {};
    const is_file = data.nesting === 0 && data.file && path.resolve(data.name) === data.file;
    if (details.type === "suite" || (is_file && type === "test:pass")) continue;
    if (error.failureType === "subtestsFailed") continue;
    const name = is_file ? [] : [...titles.slice(0, data.nesting), data.name];
    const broken = is_file || BEFORE.has(error.failureType);
    const failed = broken ? "errors" : "failed";
    const skipped = data.skip !== undefined || data.todo !== undefined;
    const why = String((error.cause && error.cause.stack) || error.cause || "").slice(0, 200);
    told.push([named(data.file, name), skipped ? "skipped" : type === "test:pass" ? "passed" : failed, why]);
  }
  for (const line of [...told, "end"]) yield JSON.stringify(line) + "\n";
}

module.exports = listenToNode;

// ------------------------------------------------------------------------------------------------

if (out) {
  const main = path.basename(process.argv[1] || "");
  if (/^vitest(\.mjs)?$/.test(main) && !/^(list|bench|init)$/.test(process.argv[2] || "")) {
    if (apart) process.env.CI = process.env.CI || "true"; // or it writes missing snapshots
    if (!process.argv.some((word) => /^--reporter/.test(word))) process.argv.push("--reporter=default");
    process.argv.push("--reporter=junit", `--outputFile.junit=${out}`, ...(only || []));
    leaveNoTrace();
  } else {
    const load = Module._load;
    const seen = new WeakMap();
    const listening = (request, loaded) => {
      if (/@jest[\\/]core/.test(request) && loaded && loaded.runCLI) return listenToJest(loaded);
      const is_mocha = /mocha/.test(request) && typeof loaded === "function";
      if (is_mocha && loaded.prototype && loaded.prototype.loadFilesAsync) listenToMocha(loaded);
      return loaded;
    };
    Module._load = function (request, ...rest) {
      const loaded = load.call(this, request, ...rest);
      if (loaded === null || !/^(object|function)$/.test(typeof loaded)) return loaded;
      if (!/jest|mocha/.test(request)) return loaded;
      if (!seen.has(loaded)) seen.set(loaded, listening(request, loaded));
      return seen.get(loaded);
    };
  }
}
