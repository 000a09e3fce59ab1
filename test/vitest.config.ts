import { statfsSync } from 'node:fs';
import { defineConfig, type ViteUserConfig } from 'vitest/config';
import { compileCache } from './support/build-once.ts';
import { patienceMs } from './support/patience.ts';
import { postgresPrograms } from './support/process/postgres-programs.ts';
import { NotTestedReporter } from './support/report/not-tested.ts';

// `npm test` runs two projects: 'in process' and 'stories'. `npm run test:all` runs all of them.

/** The main uses of the program, from end to end. */
const stories = [
  'test/e2e/{demo,init,outbox-decisions,readme,restore,status}.test.ts',
  'test/e2e/sync-real-store.test.ts',
  'test/fault/killed-agent.test.ts',
];

/** Tests that start daemons as processes. */
const realProcesses = ['test/e2e/**/*.test.ts', 'test/fault/**/*.test.ts', 'test/contract/hostile.test.ts'];

/** Tests of `realProcesses` that have a time limit: nothing else may run at the same time. */
const timed = [
  'test/e2e/{limits,prefer-wait,sync-verdict}.test.ts',
  'test/fault/postgres-rolling-restart.test.ts',
];

/** Tests of `realProcesses` with an authority: they run once on each engine. */
const realProcessesOnBothEngines = [
  'test/contract/hostile.test.ts',
  'test/fault/{redemptions,change-feed-killed}.test.ts',
];

/** A test of `realProcesses` that kills more often in a project of its own. */
const killed = ['test/fault/change-feed-killed.test.ts'];

/** Tests in process that start a PostgreSQL server of their own. */
const withOwnPostgres = [
  'test/features/postgres/store/**/*.test.ts',
  'test/features/postgres/daemon/*.test.ts',
  'test/features/postgres/cli/*.test.ts',
  'test/features/postgres/service/engine.test.ts',
  'test/features/{following,webhooks}/store/postgres.test.ts',
  'test/features/console/store/nodes.test.ts',
];

/** Tests in process that take too long for `npm test`. */
const thorough = [
  'test/property/simulation/{simulation,aimed-simulation,sabotaged-protocol,main}.test.ts',
  'test/property/simulation/latchkey/{latchkey-simulation,found-seeds,fleet,license-end,rows}.test.ts',
  'test/property/fast-path.test.ts',
  'test/{http-guide,regular-expressions}.test.ts',
  'test/client/{guide,types}.test.ts',
  'test/contract/{openapi,unanswered}.test.ts',
  'test/daemon/{heap,memory,slow-stop}.test.ts',
  'test/http/entry/unread-answers.test.ts',
  'test/http/response-cache/same-responses.test.ts',
  'test/features/leases/holder/{end-table,lease-files}.test.ts',
  'test/features/leases/daemon/{holder,holder-copies}.test.ts',
  'test/features/leases/property/leases.test.ts',
  'test/features/sandbox/{demo,testing}.test.ts',
  'test/packaging/declarations.test.ts',
  'test/features/install/completion.test.ts',
];

/** Tests in process with an authority: they run once on each engine. */
const onBothEngines = [
  'test/contract/{access,accounts,dialects,http,http-gate,openapi,store-authority,tokens}.test.ts',
  'test/http/{after-commit,answers}.test.ts',
  'test/http/entry/{bodies,departure,instance,request-id}.test.ts',
  'test/http/openapi/openapi-examples.test.ts',
  'test/http/routes/admin/{audit,catalogue,coupon-change,history}.test.ts',
  'test/http/routes/admin/{license-terms,purchase,rotate,sell}.test.ts',
  'test/http/routes/api/{checkout,checkout-archived,checkout-examples,pages,pasted-codes,unchanged-limit,use}.test.ts',
  'test/features/buyers/http/{guesses,license-view,recovery}.test.ts',
  'test/features/leases/contract.test.ts',
  'test/features/leases/store/activation.test.ts',
  'test/features/customers/{http,store}/customer.test.ts',
  'test/features/console/store/series.test.ts',
  'test/features/bulk/http/{export,import,import-dry-run}.test.ts',
  'test/features/following/http/{agent,change-feed,change-feed-hostile,change-feed-old}.test.ts',
  'test/features/webhooks/http/webhook.test.ts',
  'test/cli/{every-command,seller}.test.ts',
];

const leftOut = postgresPrograms === null ? ['the projects on PostgreSQL (apt-get install postgresql)'] : [];

// The limits only end tests that hang. A busy machine takes twenty times as long as an idle one.
const timeouts = { testTimeout: 300_000, hookTimeout: 300_000 };

/** Where temporary files cost nothing, if there is room; null: elsewhere. */
const memory = hasRoom('/dev/shm') ? '/dev/shm' : null;

/** What makes tests in process faster. */
const env = {
  // A thread of a daemon would compile all of its modules anew at each start.
  NODE_COMPILE_CACHE: compileCache,
  // Thousands of stores, of which none has to outlive the machine.
  ...(memory !== null && { TMPDIR: memory }),
};

/** Whether a folder exists and has a gibibyte left. */
function hasRoom(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize > 1024 ** 3;
  } catch {
    return false;
  }
}

// Without isolation, the files of a worker share their imports, which take longer to load than most files to run.
const inProcess = { isolate: false, ...timeouts, sequence: { groupOrder: 0 } };

// Real daemons on real clocks. Tests are not retried: a use that counts twice once in a while is a bug.
const inProcesses = {
  ...timeouts,
  sequence: { groupOrder: 1 },
  globalSetup: ['test/support/process/built-program.ts'],
};
const inProcessesAlone = { ...inProcesses, maxWorkers: 1, sequence: { groupOrder: 2 } };

const sharedPostgres = 'test/features/postgres/support/shared-postgres.ts';

/** Windows' Node under Wine runs tests too: `test/windows/vitest.config.ts` chooses them. */
const windows = ['test/windows/**/*.test.ts'];

const notInProcess = [...realProcesses, ...withOwnPostgres, ...thorough, ...windows];
const projects = [
  { name: 'in process', include: ['test/**/*.test.ts'], exclude: notInProcess, env, ...inProcess },
  { name: 'stories', include: stories, ...inProcesses },
  { name: 'thorough', include: thorough, env, ...inProcess },
  { name: 'thorough, real processes', include: killed, env: { LATCHKEY_KILLS: '50' }, ...inProcesses },
  { name: 'with PostgreSQL', include: withOwnPostgres, ...inProcess },
  { name: 'real processes', include: realProcesses, exclude: [...timed, ...stories], ...inProcesses },
  { name: 'real processes in time', include: timed, ...inProcessesAlone },
  { name: 'windows', include: ['test/windows/wine.test.ts'], ...inProcessesAlone },
];

const projectsOnPostgres = [
  { name: 'on PostgreSQL', include: onBothEngines, globalSetup: sharedPostgres, ...inProcess },
  {
    name: 'real processes on PostgreSQL',
    include: realProcessesOnBothEngines,
    ...inProcesses,
    globalSetup: [sharedPostgres, ...inProcesses.globalSetup],
  },
];

const config: ViteUserConfig = defineConfig({
  test: {
    maxWorkers: 2,
    reporters: ['default', new NotTestedReporter(leftOut)],
    // The reporter reads the conditions of skipped tests in their files.
    includeTaskLocation: true,
    unstubEnvs: true,
    // The default of one second is too short on a busy machine.
    expect: { poll: { timeout: patienceMs } },
    projects: [...projects, ...(postgresPrograms === null ? [] : projectsOnPostgres)].map((test) => ({
      extends: true,
      test,
    })),
  },
});

export default config;
