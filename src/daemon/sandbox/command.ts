import closeWithGrace from 'close-with-grace';
import { join, dirname, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { existsSync, statSync } from 'node:fs';
import { stringify } from 'yaml';
import { z } from 'zod';
import { type DialectName, credentialHeaders } from '../../domain/header-names.ts';
import { maxLicenseKeyLength } from '../../domain/license.ts';
import { minSecretLength } from '../../service/access/credential.ts';
import { ListenError } from '../../http/listen.ts';
import { makeLog } from '../log.ts';
import { maxTimerMs } from '../system/machine.ts';
import { endingSignals, onEndingSignal, skippedSignals } from '../system/process.ts';
import { makeTemporaryDirectory } from '../system/temporary-directory.ts';
import type { Tree } from '../../config/file/tree.ts';
import { AdvancingTime } from './advancing-time.ts';
import {
  addDemoYear,
  type DemoData,
  demoDataMs,
  demoStoreConfiguration,
  startDemoAgent,
} from './demo-data/demo-data.ts';
import { SandboxAgent, agentConfiguration } from './agent.ts';
import { eventConfiguration } from './store-events.ts';
import { SandboxHolder } from './holder.ts';
import { SandboxIssuer, type SandboxRootKey } from './issuer.ts';
import { type SandboxFaults, SandboxStore, type SandboxCredentials, type SandboxParts } from './store.ts';
import { formatReason } from '../../config/errors.ts';
import { makeDirectory, readOwnFile, replaceFile } from '../../store/sqlite/files/private-file.ts';

type SandboxCommand = SandboxFaults & {
  /** 0: a free port. */
  port: number;
  dialect: DialectName;
  /** Null: the store stays. */
  offlineAfterMs: number | null;
  /** The file of credentials, which is written if there is none. */
  credentialsFile: string | null;
  /** The folder to which the configuration of an agent is written. */
  configurationDirectory: string | null;
  /** Also runs an agent in front of the store. */
  withAgent: boolean;
  /** The agent never uses `/sync/v1`. */
  isPlain: boolean;
  /** Also issues leases for three devices, and runs a holder. */
  withHolder: boolean;
  /** Also runs an agent, to which the store sends an event about each refund. With a holder, the agent issues the leases. */
  withWebhooks: boolean;
  /** The store has a year of sales, and the agent a week of changes. */
  demoData: boolean;
  /** Prints one line of JSON. */
  json: boolean;
};

/** What the command prints; the names are those of its JSON. */
type SandboxFacts = FileCredentials & {
  address: string;
  admin_token: string;
  state: string;
  dialect: DialectName;
  /** The address of the agent. */
  agent: string | null;
  agent_state: string | null;
  /** Whether the store sends events to the agent. */
  webhooks: boolean;
  /** The configuration that was written for an agent. */
  configuration: string | null;
  /** A holder of leases, and what its program has compiled in. */
  holder: { address: string; issuer: string; roots: readonly SandboxRootKey[] } | null;
};

/** Runs a store with one product and one license key until a signal, and prints its credentials. Throws `SandboxError`. */
export async function runSandbox(options: SandboxCommand): Promise<never> {
  const fixed = options.credentialsFile === null ? null : readCredentials(options.credentialsFile);
  const { configurationDirectory } = options;
  const configuration = configurationDirectory === null ? null : newConfigurationFile(configurationDirectory);
  const directory = makeTemporaryDirectory('latchkey-sandbox-');
  const log = await makeLog({ level: 'warn', format: 'pretty' });
  const time = new AdvancingTime(options.demoData ? -demoDataMs : 0);
  const shared = { dialect: options.dialect, time, log };
  const stateDir = join(directory.path, 'authority');
  const store = openStore(options, fixed, { ...shared, directory: stateDir });
  let agent: SandboxAgent | null = null;
  let holder: SandboxHolder | null = null;
  const end = async (): Promise<void> => {
    await Promise.all([agent?.stop(), holder?.stop(), store.goAway()]);
    directory[Symbol.dispose]();
  };
  const closing = endingSignals.includes('SIGHUP') ? ['SIGHUP' as const] : [];
  const skip = ['beforeExit' as const, ...closing, ...skippedSignals];
  const ending = closeWithGrace({ delay: 15_000, skip, logger: undefined }, end);
  onEndingSignal(() => ending.close());
  try {
    await store.comeBack();
    const demoData = options.demoData ? await addDemoYear(store, { directory: stateDir, time }) : null;
    const licenseKey = await store.sellOne(fixed === null ? {} : { licenseKey: fixed.license_key });
    const facts = { ...factsOf(store, licenseKey), state: stateDir, configuration };
    if (options.credentialsFile !== null && fixed === null)
      writeCredentials(options.credentialsFile, credentialsOf(facts));
    if (options.withAgent || options.withWebhooks) {
      const parts = {
        ...shared,
        directory: join(directory.path, 'agent'),
        store,
        configuration: agentSettings(options, store, demoData),
      };
      agent = new SandboxAgent(parts);
      await (demoData === null ? agent.start() : startDemoAgent(agent, store, { ...demoData, time }));
      if (options.isPlain) await agent.choosePlain();
    }
    if (configuration !== null) writeAgentConfiguration(store, configuration, demoData?.configuration);
    if (options.withWebhooks) store.eventsTo = agent?.url ?? null;
    const issuer = await setUpIssuer(options, store, { agent, stateDir, time });
    if (options.withHolder && issuer !== null) {
      const settings = { deviceName: 'sandbox', configuration: {} };
      const parts = { ...shared, directory: join(directory.path, 'holder'), store, issuer, ...settings };
      holder = new SandboxHolder(parts);
      await holder.start();
    }
    const held = issuer && holder && { address: holder.url, issuer: issuer.issuer, roots: issuer.roots };
    print({ ...facts, ...factsOfAgent(agent), webhooks: options.withWebhooks, holder: held }, options.json);
  } catch (error) {
    await end();
    if (error instanceof ListenError) throw new SandboxError(`${error.message}; choose another: --port`);
    throw error;
  }
  if (options.offlineAfterMs !== null) await goOffline(store, options.offlineAfterMs, options.json);
  // A timer keeps the process alive until a signal.
  for (;;) await sleep(maxTimerMs);
}

function openStore(
  options: SandboxCommand,
  fixed: FileCredentials | null,
  parts: SandboxParts,
): SandboxStore {
  const credentials: SandboxCredentials | null = fixed && {
    apiKey: fixed.api_key,
    productKey: fixed.product_key,
    productSecret: fixed.product_secret,
  };
  const configuration = options.demoData ? demoStoreConfiguration : {};
  return new SandboxStore({ ...parts, port: options.port, credentials, faults: options, configuration });
}

function agentSettings(
  { withWebhooks }: SandboxCommand,
  { credentials }: SandboxStore,
  demoData: DemoData | null,
): Tree {
  return { ...demoData?.configuration, ...(withWebhooks && eventConfiguration(credentials.apiKey)) };
}

/** With events, the agent issues the leases: so a refund reaches the device by way of the agent. Null: no leases. */
async function setUpIssuer(
  { withHolder, withWebhooks, demoData }: SandboxCommand,
  store: SandboxStore,
  { agent, stateDir, time }: { agent: SandboxAgent | null; stateDir: string; time: AdvancingTime },
): Promise<SandboxIssuer | null> {
  if (withHolder && withWebhooks && agent !== null)
    return await SandboxIssuer.setUp(store, { directory: agent.stateDir, time, url: agent.url });
  if (withHolder) return await issueLeases(store, stateDir, time);
  // The devices of the demo data have leases.
  return demoData ? await SandboxIssuer.setUp(store, { directory: stateDir, time }) : null;
}

/** A license has three seats. Leases are short, so that their end can be seen. */
async function issueLeases(
  store: SandboxStore,
  directory: string,
  time: AdvancingTime,
): Promise<SandboxIssuer> {
  const issuer = await SandboxIssuer.setUp(store, { directory, time });
  await issuer.setTerms({ seats: 3, holdMs: 0, termMs: 10 * 60_000, refreshMs: 60_000 });
  return issuer;
}

async function goOffline(store: SandboxStore, afterMs: number, json: boolean): Promise<void> {
  await sleep(afterMs);
  await store.goAway();
  if (!json) process.stdout.write('The sandbox is offline now. Press Ctrl-C to quit.\n');
}

function factsOf(
  store: SandboxStore,
  licenseKey: string,
): Omit<SandboxFacts, 'state' | 'agent' | 'agent_state' | 'webhooks' | 'holder' | 'configuration'> {
  const { apiKey, productKey, productSecret } = store.credentials;
  return {
    address: store.url,
    api_key: apiKey,
    product_key: productKey,
    product_secret: productSecret,
    license_key: licenseKey,
    admin_token: store.adminToken,
    dialect: store.dialect,
  };
}

function factsOfAgent(agent: SandboxAgent | null): Pick<SandboxFacts, 'agent' | 'agent_state'> {
  return { agent: agent?.url ?? null, agent_state: agent?.stateDir ?? null };
}

function credentialsOf({
  api_key,
  product_key,
  product_secret,
  license_key,
}: FileCredentials): FileCredentials {
  return { api_key, product_key, product_secret, license_key };
}

function print(facts: SandboxFacts, json: boolean): void {
  process.stdout.write(json ? `${JSON.stringify(facts)}\n` : describe(facts));
}

function describe(facts: SandboxFacts): string {
  const { address, agent, ...credentials } = facts;
  return `A sandbox of the store's API is running. Ctrl-C ends it and removes its data.

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

Open its console:
  latchkey console --admin --state-dir ${credentials.state}

${facts.holder === null ? '' : describeHolder(facts, facts.holder)}${adviceOn(facts)}`;
}

function adviceOn(facts: SandboxFacts): string {
  if (facts.webhooks) return describeWebhooks(facts);
  return facts.holder === null ? adviseAgent(facts) : '';
}

/** The way of a refund: an event of the store, a read of the agent, and a notice to the device. */
function describeWebhooks({ agent, license_key, product_secret, state, holder }: SandboxFacts): string {
  return `${holder === null ? '' : '\n'}The store sends an event about each refund to the agent on ${agent}, as Payhip does.
Refund the license, and ask ${holder === null ? 'the agent' : 'the agent and the holder'} again within seconds:
  latchkey purchase refund ${license_key} --state-dir ${state}
  curl -H '${credentialHeaders.productSecret}: ${product_secret}' \\
    '${agent}/api/v2/license/verify?license_key=${license_key}'
${holder === null ? '' : `  curl '${holder.address}/api/v2/license/verify?license_key=${license_key}'\n`}`;
}

function describeHolder(
  { license_key, state, webhooks }: SandboxFacts,
  { address, issuer, roots }: NonNullable<SandboxFacts['holder']>,
): string {
  return `A holder of leases answers on ${address}, without the product secret.${webhooks ? '' : ' A license has 3 seats.'}
Compile into a program that checks leases:
  issuer: "${issuer}"
  roots: [
${roots.map((root) => `    ${JSON.stringify(root)}`).join(',\n')}
  ]

Try it:
  curl '${address}/api/v2/license/verify?license_key=${license_key}'
  curl '${address}/agent/v1/lease?license_key=${license_key}&nonce=0123456789abcdef'
${webhooks ? '' : `  latchkey activation list --state-dir ${state}\n  latchkey disable ${license_key} --state-dir ${state}\n`}`;
}

function adviseAgent(facts: SandboxFacts): string {
  const { address, agent, agent_state, configuration, api_key, product_key, product_secret, dialect } = facts;
  if (configuration !== null)
    return `Put an agent in front of it:\n  latchkey serve --config ${configuration}\n`;
  if (agent !== null)
    return `An agent in front of it answers on ${agent}
Open the console of the agent:
  latchkey console --admin --state-dir ${agent_state}
`;
  return `Put an agent in front of it:
  upstream: { base_url: '${address}', api_key: '${api_key}', dialect: ${dialect} }
  products: [{ key: '${product_key}', secret: '${product_secret}' }]
`;
}

const secret = z.string().min(minSecretLength).max(200);

const fileCredentials = z.strictObject({
  api_key: secret,
  product_key: z.string().min(1).max(100),
  product_secret: secret,
  license_key: z.string().min(1).max(maxLicenseKeyLength),
});

/** The file of `--credentials`: what people build into the software that they try with a sandbox. */
type FileCredentials = z.infer<typeof fileCredentials>;

/** A file of the sandbox cannot be used. The message repeats no secret. */
export class SandboxError extends Error {}

/** Reads the file of credentials; null if there is no file yet. Throws `SandboxError`. */
function readCredentials(file: string): FileCredentials | null {
  const text = readText(file);
  if (text === null && !existsSync(dirname(file)))
    throw new SandboxError(`--credentials: there is no folder for ${file}`);
  if (text === null) return null;
  const read = fileCredentials.safeParse(parseJson(text));
  if (read.success) return read.data;
  const errors = read.error.issues.map(({ path, message }) => `${path.join('.') || 'file'}: ${message}`);
  throw new SandboxError(`${file}: ${errors.join('; ')}`);
}

/** Writes the file of credentials for the next run, for its owner alone. Throws `SandboxError`. */
function writeCredentials(file: string, credentials: FileCredentials): void {
  write('--credentials', file, () => replaceFile(file, `${JSON.stringify(credentials, null, 2)}\n`));
}

/** The path of a new configuration in a folder. Throws `SandboxError` if there is a configuration, which may be in use. */
function newConfigurationFile(folder: string): string {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() === false) {
    throw new SandboxError(`${folder} is a file: a folder is needed for the configuration`);
  }
  const file = join(resolve(folder), 'latchkey.yaml');
  if (existsSync(file)) throw new SandboxError(`${file} exists: it is not overwritten`);
  return file;
}

/** Writes the configuration of an agent in front of a store. Throws `SandboxError`. */
function writeAgentConfiguration(store: SandboxStore, file: string, settings: Tree = {}): void {
  const folder = dirname(file);
  const base = agentConfiguration(store, join(folder, 'state'));
  write('--write-config', file, () => {
    makeDirectory(folder, 0o700);
    replaceFile(file, stringify({ ...base, ...settings }));
  });
}

function write(option: string, file: string, writeFile: () => void): void {
  try {
    writeFile();
  } catch (error) {
    throw new SandboxError(`${option}: ${file} cannot be written: ${formatReason(error)}`);
  }
}

function readText(file: string): string | null {
  try {
    return readOwnFile(file);
  } catch (error) {
    throw new SandboxError(`--credentials: ${file} cannot be read: ${formatReason(error)}`);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
