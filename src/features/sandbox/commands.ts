import { parseDuration } from '../../config/value/unit.ts';
import { dialectNames, type ForeignStoreName, foreignStoreNames } from '../../domain/header-names.ts';
import {
  CommandError,
  defineCommand,
  refuseDaemonOptions,
  textOption,
  UsageError,
} from '../../cli/command.ts';
import { exitCode } from '../../cli/exit-code.ts';
import { programName } from '../../cli/hint.ts';

export const sandbox = defineCommand({
  command: 'sandbox',
  describe: 'Run a temporary authority to try things out',
  builder: {
    port: { ...textOption('TCP port; 0: a free one, or that of the kept sandbox'), default: '0' },
    latency: { ...textOption('Wait before each answer'), default: '0s' },
    'error-rate': { ...textOption('Share of requests refused with 503, 0 to 1'), default: '0' },
    'lost-replies': {
      ...textOption('Share of requests carried out but not answered, 0 to 1'),
      default: '0',
    },
    store: {
      choices: foreignStoreNames,
      describe: 'A stand-in for this store, instead of an authority',
    },
    dialect: { choices: dialectNames, default: 'specification', describe: 'Dialect of its answers' },
    seed: textOption('Make the same requests fail each time'),
    'offline-after': textOption('Stop answering after this long'),
    credentials: textOption('File of credentials to use; created if missing', 'file'),
    keep: textOption('Folder that keeps the data, so that the sandbox can come back', 'folder'),
    'write-config': textOption('Write the configuration of an agent of the sandbox to this file', 'file'),
    'with-agent': { type: 'boolean', default: false, describe: 'Also run an agent of the sandbox' },
    plain: {
      type: 'boolean',
      default: false,
      describe: 'The agent treats the sandbox as a store that is no Latchkey',
    },
    'with-holder': {
      type: 'boolean',
      default: false,
      describe: 'Also issue leases for three devices, and run a holder of leases',
    },
    'with-webhooks': {
      type: 'boolean',
      default: false,
      describe: 'Also run an agent, to which the store sends an event about each refund',
    },
    'demo-data': {
      type: 'boolean',
      default: false,
      describe: 'Begin with a year of sales, refunds, coupons and seats, and an outage of the agent',
    },
  },
  examples: [
    [
      'latchkey sandbox --keep ./sandbox --write-config latchkey.yaml',
      'a store that comes back, for your own agent',
    ],
    ['latchkey sandbox --dialect payhip', 'for software that was written for that store'],
    ['latchkey sandbox --store gumroad --with-agent', 'a stand-in for Gumroad, and an agent'],
    ['latchkey sandbox --demo-data --with-agent', 'with data that is worth looking at'],
    ['latchkey sandbox --with-agent --plain --lost-replies 0.1', 'an agent of a store that is no Latchkey'],
    ['latchkey sandbox --with-webhooks --with-holder', 'a refund reaches the device within seconds'],
    ['latchkey sandbox --latency 200ms --lost-replies 0.1', 'slow, and every tenth answer is lost'],
  ],
  handler: async (args) => {
    refuseDaemonOptions(args, 'a sandbox has its own data, which --keep DIR keeps');
    if (args.plain && !args.withAgent && !args.withWebhooks)
      throw new UsageError('--plain is about the agent: add --with-agent');
    const options = {
      port: readPort(args.port),
      latencyMs: readDuration('latency', args.latency),
      errorRate: readShare('error-rate', args.errorRate),
      lostReplies: readShare('lost-replies', args.lostReplies),
      offlineAfterMs:
        args.offlineAfter === undefined ? null : readDuration('offline-after', args.offlineAfter),
      dialect: args.dialect,
      seed: args.seed ?? null,
      credentialsFile: args.credentials ?? null,
      configuration: args.writeConfig ?? null,
      directory: args.keep ?? null,
      withAgent: args.withAgent,
      isPlain: args.plain,
      withHolder: args.withHolder,
      withWebhooks: args.withWebhooks,
      demoData: args.demoData,
      json: args.json === true,
      program: programName(),
    };
    if (args.store !== undefined) {
      refuseForStore(args);
      const { runStoreSandbox } = await import('./stores/sandbox.ts');
      return await runStoreSandbox(args.store, options);
    }
    const { runSandbox } = await import('./run-sandbox.ts');
    const { SandboxError } = await import('./files.ts');
    try {
      return await runSandbox(options);
    } catch (error) {
      if (!(error instanceof SandboxError)) throw error;
      throw new CommandError([`latchkey: ${error.message}`]);
    }
  },
});

export const demo = defineCommand({
  command: 'demo',
  describe: 'Show the main scenario end to end, in a few seconds',
  builder: {
    store: { choices: foreignStoreNames, describe: 'With a stand-in for this store' },
  },
  examples: [
    ['latchkey demo', 'on a temporary store and agent'],
    ['latchkey demo --store gumroad', 'on a stand-in for Gumroad'],
  ],
  handler: async (args, output) => {
    refuseDaemonOptions(args, 'the demo has its own data, which it removes at the end');
    const run = await loadDemo(args.store);
    if (!args.json) return await run(output.print);
    const steps: string[] = [];
    const code = await run((line) => steps.push(line));
    output.printJson({ ok: code === exitCode.done, steps });
    return code;
  },
});

async function loadDemo(
  store: ForeignStoreName | undefined,
): Promise<(print: (line: string) => void) => Promise<number>> {
  if (store === undefined) return (await import('./demo.ts')).runDemo;
  const { runStoreDemo } = await import('./stores/demo.ts');
  return (print) => runStoreDemo(store, print);
}

/** A stand-in for a store has no data of an authority. */
function refuseForStore(args: Readonly<Record<string, unknown>>): void {
  const others = [
    'seed',
    'credentials',
    'keep',
    'writeConfig',
    'plain',
    'withHolder',
    'withWebhooks',
    'demoData',
  ];
  const given = others.find((name) => args[name] !== undefined && args[name] !== false);
  if (given !== undefined)
    throw new UsageError(
      `--${given.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} cannot be given with --store`,
    );
}

function readPort(text: string): number {
  if (/^\d+$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new UsageError('--port must be a whole number from 0 to 65535');
}

function readShare(name: string, text: string): number {
  if (/^(?:\d+|\d*\.\d+)$/.test(text) && Number(text) <= 1) return Number(text);
  throw new UsageError(`--${name} must be a number from 0 to 1`);
}

function readDuration(name: string, text: string): number {
  const durationMs = parseDuration(text);
  if (durationMs !== undefined) return durationMs;
  throw new UsageError(`--${name} must be a duration such as 500ms, 30s or 5m`);
}
