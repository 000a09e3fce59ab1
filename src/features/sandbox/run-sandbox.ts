import { join } from 'node:path';
import { AdvancingTime } from '../../daemon/system/clock.ts';
import type { DialectName } from '../../domain/header-names.ts';
import { ListenError } from '../../http/listen.ts';
import { StateDirectoryHeld } from '../../store/sqlite/faults.ts';
import { makeLog } from '../../daemon/log.ts';
import type { Tree } from '../../config/file/tree.ts';
import {
  addDemoYear,
  type DemoData,
  demoDataMs,
  demoStoreConfiguration,
  startDemoAgent,
} from './demo-data/demo-data.ts';
import { SandboxAgent } from './agent.ts';
import { describeSandbox, type SandboxFacts } from './facts.ts';
import {
  configurationFile,
  credentialsOf,
  type FileCredentials,
  keptFolder,
  type KeptFacts,
  readCredentials,
  type SandboxFolder,
  SandboxError,
  temporaryFolder,
  writeAgentConfiguration,
  writeCredentials,
} from './files.ts';
import { eventConfiguration } from './store-events.ts';
import { SandboxHolder } from './holder.ts';
import { SandboxIssuer } from './issuer.ts';
import {
  sampleCredentials,
  sampleLicenseKey,
  type SandboxFaults,
  SandboxStore,
  type SandboxParts,
} from './store.ts';
import { minuteMs } from '../../domain/time.ts';
import { endAtSignal, runUntilSignal } from './until-signal.ts';

type SandboxCommand = SandboxFaults & {
  /** 0: a free port, or that of the earlier sandbox in `directory`. */
  port: number;
  dialect: DialectName;
  /** Null: the store stays. */
  offlineAfterMs: number | null;
  /** The file of credentials, which is written if there is none. */
  credentialsFile: string | null;
  /** The file to which the configuration of an agent is written. */
  configuration: string | null;
  /** The folder that keeps the data for the next sandbox; null: the data is removed. */
  directory: string | null;
  /** Also runs an agent in front of the store. */
  withAgent: boolean;
  /** The agent never uses the change feed of the authority. */
  isPlain: boolean;
  /** Also issues leases for three devices, and runs a holder. */
  withHolder: boolean;
  /** Also runs an agent, to which the store sends an event about each refund. With a holder, the agent issues the leases. */
  withWebhooks: boolean;
  /** The store has a year of sales, and the agent a week of changes. */
  demoData: boolean;
  /** Prints one line of JSON. */
  json: boolean;
  /** What a person types to call Latchkey. */
  program: string;
};

/** Runs a store with one product and one license key until a signal, and prints its credentials. Throws `SandboxError`. */
export async function runSandbox(options: SandboxCommand): Promise<never> {
  const fixed = options.credentialsFile === null ? null : readCredentials(options.credentialsFile);
  const configuration = options.configuration === null ? null : configurationFile(options.configuration);
  const folder = options.directory === null ? temporaryFolder() : keptFolder(options.directory);
  const sandbox: RunningSandbox = { store: null, agent: null, holder: null };
  const end = async (): Promise<void> => {
    const { store, agent, holder } = sandbox;
    await Promise.all([agent?.stop(), holder?.stop(), store?.goAway()]);
    folder.close();
  };
  endAtSignal(end);
  try {
    checkKept(options, fixed, folder);
    const facts = await start(sandbox, { options, fixed, folder, configuration });
    const { json, program } = options;
    process.stdout.write(json ? `${JSON.stringify(facts)}\n` : describeSandbox(facts, program));
  } catch (error) {
    await end();
    if (error instanceof StateDirectoryHeld) throw new SandboxError(error.message);
    if (!(error instanceof ListenError)) throw error;
    throw new SandboxError(`${error.message}${folder.kept === null ? '; choose another: --port' : ''}`);
  }
  return await runUntilSignal(options, async () => await sandbox.store?.goAway());
}

type RunningSandbox = {
  store: SandboxStore | null;
  agent: SandboxAgent | null;
  holder: SandboxHolder | null;
};

/** Refuses options that are not those of the earlier sandbox in the folder. Throws `SandboxError`. */
function checkKept(
  { port, demoData }: SandboxCommand,
  fixed: FileCredentials | null,
  { path, kept }: SandboxFolder,
): void {
  if (kept === null) return;
  if (port !== 0 && port !== kept.port)
    throw new SandboxError(
      `--port: the sandbox in ${path} was begun on port ${kept.port}, which its agents know`,
    );
  if (demoData && kept.demo === null)
    throw new SandboxError(`--demo-data: the sandbox in ${path} was begun without it`);
  const names = ['api_key', 'product_key', 'product_secret', 'license_key'] as const;
  if (fixed !== null && names.some((name) => fixed[name] !== kept[name]))
    throw new SandboxError(`--credentials: the sandbox in ${path} was begun with others`);
}

type StartParts = {
  options: SandboxCommand;
  fixed: FileCredentials | null;
  folder: SandboxFolder;
  configuration: string | null;
};

/** Starts the daemons one by one, adds each to `sandbox`, and writes the files. */
async function start(
  sandbox: RunningSandbox,
  { options, fixed, folder, configuration }: StartParts,
): Promise<SandboxFacts> {
  const { kept } = folder;
  const log = await makeLog({ level: 'warn', format: 'pretty' });
  const time = new AdvancingTime(options.demoData && kept === null ? -demoDataMs : 0);
  const shared = { dialect: options.dialect, time, log };
  const stateDir = join(folder.path, 'authority');
  const store = openStore(options, { fixed, kept }, { ...shared, directory: stateDir });
  sandbox.store = store;
  await store.comeBack();
  const demoData =
    options.demoData && kept === null ? await addDemoYear(store, { directory: stateDir, time }) : null;
  const licenseKey =
    kept?.license_key ?? (await store.sellOne({ licenseKey: fixed?.license_key ?? sampleLicenseKey }));
  const facts = { ...factsOf(store, licenseKey), state: stateDir, configuration };
  if (options.credentialsFile !== null && fixed === null) writeCredentials(options.credentialsFile, facts);
  const demo = kept?.demo ?? demoData?.configuration ?? null;
  if (configuration !== null) writeAgentConfiguration(store, configuration, demo ?? {});
  if (options.withAgent || options.withWebhooks) {
    const directory = join(folder.path, 'agent');
    const settings = agentSettings(options, store, demo);
    const port = kept?.agent_port ?? 0;
    const agent = new SandboxAgent({ ...shared, directory, store, port, configuration: settings });
    sandbox.agent = agent;
    await (demoData === null ? agent.start() : startDemoAgent(agent, store, { ...demoData, time }));
  }
  const { agent } = sandbox;
  if (options.withWebhooks) store.eventsTo = agent?.url ?? null;
  const issuer = await setUpIssuer(options, store, { agent, stateDir, time, isDemo: demo !== null });
  if (options.withHolder && issuer !== null) {
    const directory = join(folder.path, 'holder');
    const settings = { deviceName: 'sandbox', configuration: {}, port: kept?.holder_port ?? 0 };
    sandbox.holder = new SandboxHolder({ ...shared, directory, store, issuer, ...settings });
    await sandbox.holder.start();
  }
  const { holder } = sandbox;
  folder.keep({
    ...credentialsOf(facts),
    port: portOf(store.url),
    agent_port: agent === null ? (kept?.agent_port ?? null) : portOf(agent.url),
    holder_port: holder === null ? (kept?.holder_port ?? null) : portOf(holder.url),
    demo,
  });
  return {
    ...facts,
    agent: agent?.url ?? null,
    agent_state: agent?.stateDir ?? null,
    webhooks: options.withWebhooks,
    holder: issuer && holder && { address: holder.url, issuer: issuer.issuer, roots: issuer.roots },
    kept: options.directory === null ? null : folder.path,
  };
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}

function openStore(
  options: SandboxCommand,
  { fixed, kept }: { fixed: FileCredentials | null; kept: KeptFacts | null },
  parts: SandboxParts,
): SandboxStore {
  const given = kept ?? fixed;
  const credentials = given && {
    apiKey: given.api_key,
    productKey: given.product_key,
    productSecret: given.product_secret,
  };
  const isDemo = kept === null ? options.demoData : kept.demo !== null;
  return new SandboxStore({
    ...parts,
    port: kept?.port ?? options.port,
    credentials: credentials ?? sampleCredentials,
    isKept: kept !== null,
    faults: options,
    configuration: isDemo ? demoStoreConfiguration : {},
  });
}

function agentSettings(
  { withWebhooks }: SandboxCommand,
  { credentials }: SandboxStore,
  demo: DemoData['configuration'] | null,
): Tree {
  return { ...demo, ...(withWebhooks && eventConfiguration(credentials.apiKey)) };
}

/** With events, the agent issues the leases: so a refund reaches the device by way of the agent. Null: no leases. */
async function setUpIssuer(
  { withHolder, withWebhooks }: SandboxCommand,
  store: SandboxStore,
  {
    agent,
    stateDir,
    time,
    isDemo,
  }: { agent: SandboxAgent | null; stateDir: string; time: AdvancingTime; isDemo: boolean },
): Promise<SandboxIssuer | null> {
  if (withHolder && withWebhooks && agent !== null)
    return await SandboxIssuer.setUp(store, { directory: agent.stateDir, time, url: agent.url });
  if (withHolder) return await issueLeases(store, stateDir, time);
  // The devices of the demo data have leases.
  return isDemo ? await SandboxIssuer.setUp(store, { directory: stateDir, time }) : null;
}

/** A license has three seats. Leases are short, so that their end can be seen. */
async function issueLeases(
  store: SandboxStore,
  directory: string,
  time: AdvancingTime,
): Promise<SandboxIssuer> {
  const issuer = await SandboxIssuer.setUp(store, { directory, time });
  await issuer.setTerms({ seats: 3, holdMs: 0, termMs: 10 * minuteMs, refreshMs: minuteMs });
  return issuer;
}

function factsOf(
  store: SandboxStore,
  licenseKey: string,
): Pick<SandboxFacts, 'address' | 'admin_token' | 'dialect' | keyof FileCredentials> {
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
