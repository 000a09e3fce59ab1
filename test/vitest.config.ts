import { defineConfig, type ViteUserConfig } from 'vitest/config';
import { patienceMs } from './support/patience.ts';
import { postgresPrograms } from './support/postgres/postgres-programs.ts';

/** What a user does, end to end: `npm test` runs these beside the suites in process. */
const stories = [
  'test/e2e/{demo,init,outbox-decisions,readme,restore,status}.test.ts',
  'test/e2e/sync-real-store.test.ts',
  'test/fault/killed-agent.test.ts',
];
const real = ['test/e2e/**/*.test.ts', 'test/fault/**/*.test.ts', 'test/contract/hostile.test.ts'];
/** Those of them with a time in which something must be done: nothing else may run. */
const timed = [
  'test/e2e/{limits,prefer-wait,sync-verdict}.test.ts',
  'test/fault/postgres-rolling-restart.test.ts',
];
/** Those of an authority, which are run with one on each engine. */
const realOnEitherEngine = ['test/contract/hostile.test.ts', 'test/fault/redemptions.test.ts'];

/** Suites of an authority, whichever engine it keeps its records on: each file runs once on each. */
const onEitherEngine = [
  'test/contract/{access,accounts,dialects,http,http-gate,openapi,tokens}.test.ts',
  'test/http/{after-commit,answers,audit,bodies,catalogue,checkout,checkout-archived,checkout-examples}.test.ts',
  'test/http/{coupon-change,departure,export,history,import,import-dry-run,instance}.test.ts',
  'test/http/{openapi-examples,pages,pasted-codes,purchase}.test.ts',
  'test/http/{repeated-change,repeated-request,repeated-verify,request-id,roll,sell,unchanged-limit}.test.ts',
  'test/cli/{every-command,seller}.test.ts',
];

if (postgresPrograms === null) {
  process.stderr.write('PostgreSQL is not installed (apt-get install postgresql): its tests are skipped.\n');
}

// Times that only end what hangs: a machine that is busy with others takes twenty times as long as one that is not.
const inTime = { testTimeout: 300_000, hookTimeout: 300_000 };

// The files of a worker share what they import, which takes longer to load than most of them to run.
const inProcess = { isolate: false, ...inTime, sequence: { groupOrder: 0 } };

// Real daemons on real clocks. None has a second chance: what counts twice once in a while is a fault.
const inProcesses = { ...inTime, sequence: { groupOrder: 1 } };
const inProcessesAlone = { ...inProcesses, maxWorkers: 1, sequence: { groupOrder: 2 } };

const globalSetup = 'test/support/postgres/shared-postgres.ts';

const projects = [
  { name: 'in process', include: ['test/**/*.test.ts'], exclude: real, ...inProcess },
  { name: 'stories', include: stories, ...inProcesses },
  { name: 'real processes', include: real, exclude: [...timed, ...stories], ...inProcesses },
  { name: 'real processes in time', include: timed, ...inProcessesAlone },
];

const projectsOnPostgres = [
  { name: 'on PostgreSQL', include: onEitherEngine, globalSetup, ...inProcess },
  { name: 'real processes on PostgreSQL', include: realOnEitherEngine, globalSetup, ...inProcesses },
];

const config: ViteUserConfig = defineConfig({
  test: {
    maxWorkers: 2,
    unstubEnvs: true,
    // A second, as it is by default, passes on a busy machine.
    expect: { poll: { timeout: patienceMs } },
    projects: [...projects, ...(postgresPrograms === null ? [] : projectsOnPostgres)].map((test) => ({
      extends: true,
      test,
    })),
  },
});

export default config;
