import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import closeWithGrace from 'close-with-grace';
import type { FastifyInstance } from 'fastify';
import type { Tree } from '../../config/file/tree.ts';
import type { DialectName } from '../../domain/dialect.ts';
import { credentialHeaders } from '../../domain/header-names.ts';
import { ListenError } from '../../http/listen.ts';
import { replaceFile } from '../../store/sqlite/files/private-file.ts';
import { stateFiles } from '../../store/sqlite/files/state-directory.ts';
import type { Daemon } from '../daemon.ts';
import { startDaemon } from '../start/start.ts';
import { makeLog } from '../log/log.ts';
import { longestTimerMs } from '../system/clock.ts';
import { endingSignals, faultSignals, onEndingSignal } from '../system/ending-signal.ts';
import { embeddedConfiguration } from './embedded-configuration.ts';
import { LocalClient } from './local-client.ts';
import { makeSample } from './sample-catalogue.ts';
import { agentConfiguration, newConfigurationFile, writeAgentConfiguration } from './sandbox-agent.ts';
import {
  readCredentials,
  SandboxRefused,
  writeCredentials,
  type SandboxCredentials,
} from './sandbox-credentials.ts';
import { misbehave, type SandboxFaults } from './sandbox-faults.ts';
import { makeTemporaryDirectory } from './temporary-directory.ts';

export type SandboxOptions = SandboxFaults & {
  /** 0: any free one. */
  port: number;
  /** How callers of `/api` are answered. */
  dialect: DialectName;
  /** Null: it stays. */
  offlineAfterMs: number | null;
  /** Where the credentials are read from, or kept for the next run. */
  credentialsFile: string | null;
  /** Where the configuration of an agent is written. */
  configurationDirectory: string | null;
  /** Runs an agent in front of it, too. */
  withAgent: boolean;
  /** Tells everything as one line of JSON. */
  json: boolean;
};

/** What people need to know of a running sandbox; the names are those of its JSON. */
type SandboxFacts = SandboxCredentials & {
  address: string;
  admin_token: string;
  state: string;
  dialect: DialectName;
  /** The address of the agent in front of it. */
  agent: string | null;
  /** The configuration that was written for an agent. */
  configuration: string | null;
};

/**
 * Runs an authority with a small catalogue in a temporary directory, its credentials printed, until a
 * signal; for people who integrate. Throws `SandboxRefused`.
 */
export async function runSandbox(options: SandboxOptions): Promise<never> {
  const given = options.credentialsFile === null ? null : readCredentials(options.credentialsFile);
  const configuration =
    options.configurationDirectory === null ? null : newConfigurationFile(options.configurationDirectory);
  const directory = makeTemporaryDirectory('latchkey-sandbox-');
  const running: Daemon[] = [];
  const end = async (): Promise<void> => {
    await Promise.all(running.splice(0).map((daemon) => daemon.stop()));
    directory[Symbol.dispose]();
  };
  const skip = ['beforeExit' as const, ...endingSignals, ...faultSignals];
  const ending = closeWithGrace({ delay: 15_000, skip, logger: undefined }, end);
  onEndingSignal(() => ending.close());
  try {
    const facts = await begin(options, { given, configuration, directory: directory.path, running });
    process.stdout.write(options.json ? `${JSON.stringify(facts)}\n` : describe(facts));
  } catch (error) {
    await end();
    if (error instanceof ListenError) throw new SandboxRefused(`${error.message}; choose another: --port`);
    throw error;
  }
  if (options.offlineAfterMs !== null) {
    await sleep(options.offlineAfterMs);
    await running.shift()?.stop();
    if (!options.json) process.stdout.write('The sandbox is offline now. Ctrl-C ends it.\n');
  }
  // Only a signal ends it, from within; until then something must keep the process alive.
  for (;;) await sleep(longestTimerMs);
}

/** Starts the authority, then an agent if one is wanted, and writes the files that are asked for. */
async function begin(
  options: SandboxOptions,
  {
    given,
    configuration,
    directory,
    running,
  }: {
    given: SandboxCredentials | null;
    configuration: string | null;
    directory: string;
    running: Daemon[];
  },
): Promise<SandboxFacts> {
  const { daemon, facts } = await startAuthority(join(directory, 'authority'), given, options);
  running.push(daemon);
  if (options.credentialsFile !== null && given === null) writeCredentials(options.credentialsFile, facts);
  if (options.withAgent) {
    const agent = await start(agentConfiguration(facts, join(directory, 'agent')));
    running.push(agent);
    facts.agent = agent.addresses.tcp;
  }
  if (configuration !== null) writeAgentConfiguration(facts, configuration);
  return { ...facts, configuration };
}

/** Starts the authority and fills its catalogue, with the given credentials if there are any. */
async function startAuthority(
  state: string,
  given: SandboxCredentials | null,
  options: SandboxOptions,
): Promise<{ daemon: Daemon; facts: SandboxFacts }> {
  if (given !== null) {
    mkdirSync(state, { mode: 0o700 });
    replaceFile(join(state, stateFiles.apiKey), `${given.api_key}\n`);
  }
  const daemon = await start(
    { state_dir: state, listen: { tcp: `127.0.0.1:${options.port}`, dialect: options.dialect } },
    (server) => misbehave(server, options),
  );
  const address = daemon.addresses.tcp ?? '';
  const adminToken = readFileSync(join(state, stateFiles.adminToken), 'utf8').trim();
  const admin = new LocalClient(address, { authorization: `Bearer ${adminToken}` });
  const sample = await makeSample(admin, given);
  const facts = {
    address,
    api_key: readFileSync(join(state, stateFiles.apiKey), 'utf8').trim(),
    product_key: sample.productKey,
    product_secret: sample.secret,
    license_key: sample.licenseKey,
    admin_token: adminToken,
    state,
    dialect: options.dialect,
    agent: null,
    configuration: null,
  };
  return { daemon, facts };
}

async function start(
  tree: Tree,
  prepare: (server: FastifyInstance) => void = () => undefined,
): Promise<Daemon> {
  const log = await makeLog({ level: 'warn', format: 'pretty' });
  return await startDaemon(embeddedConfiguration(tree), { log, prepare });
}

function describe(facts: SandboxFacts): string {
  const { address, agent, ...credentials } = facts;
  return `A sandbox of the central API is running; Ctrl-C ends it and removes its data.

  address         ${address}
  API key         ${credentials.api_key}
  product         ${credentials.product_key}
  product secret  ${credentials.product_secret}
  license key     ${credentials.license_key}
  admin token     ${credentials.admin_token}
  state           ${credentials.state}

Try it:
  curl -H '${credentialHeaders.productSecret}: ${credentials.product_secret}' \\
    '${agent ?? address}/api/v2/license/verify?license_key=${credentials.license_key}'

${adviseAgent(facts)}`;
}

function adviseAgent(facts: SandboxFacts): string {
  const { address, agent, configuration, api_key, product_key, product_secret, dialect } = facts;
  if (configuration !== null)
    return `Put an agent in front of it:\n  latchkey serve --config ${configuration}\n`;
  if (agent !== null) return `An agent in front of it answers on ${agent}\n`;
  return `Put an agent in front of it:
  upstream: { base_url: '${address}', api_key: '${api_key}', dialect: ${dialect} }
  products: [{ key: '${product_key}', secret: '${product_secret}' }]
`;
}
