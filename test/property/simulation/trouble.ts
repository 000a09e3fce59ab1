import type { Decision } from '../../../src/domain/outbox/decision.ts';
import type { SeededRandom } from './seeded-random.ts';
import { type TroubleName, type World } from './world.ts';

/** One kind of trouble, which a seed has or has not. */
export type Trouble = {
  begin?: (world: World) => void;
  make?: (world: World, key: string) => void | Promise<void>;
  heal?: (world: World) => void;
};

const somebody = { actor: 'somebody', requestId: null, idempotency: null };

/** Other programs change the counts of the same keys. */
const others: Trouble = {
  make({ ledger, random, configuration }, key) {
    if (configuration.writers === 'many') ledger.changeElsewhere(key, random.pick(['usage', 'decrease']));
  },
};

/** A person decides about operations, hurries, pauses. Nobody confirms what was not applied. */
const people: Trouble = {
  async make(world) {
    const { agent, random } = world;
    if (agent.isDead) return;
    const dice = random.draw();
    if (dice < 0.2) await heard(agent.control.now(somebody));
    else if (dice < 0.3) await heard(agent.control.pause(somebody));
    else if (dice < 0.5) await heard(agent.control.resume(somebody));
    else await decide(world);
  },
};

async function decide({ agent, machine, random, ledger, history }: World): Promise<void> {
  const open = machine.transaction.operations.list(null, { limit: 50, offset: 0 });
  const [first, ...more] = open;
  if (first === undefined) return;
  const { id, progress } = random.pick([first, ...more]);
  const wasApplied =
    ledger.entries.some(({ operation }) => operation === id) || ledger.creations.includes(id);
  const decisions: Decision[] = wasApplied ? ['retry', 'drop', 'confirm'] : ['retry', 'drop'];
  const decision = random.pick(decisions as [Decision, ...Decision[]]);
  const before = history.decided.get(id);
  const inDoubt = progress.state === 'uncertain' || ('doubtful' in progress && progress.doubtful);
  // It may be carried out although nobody hears of it: the process may die of it.
  history.decided.set(id, { inDoubt: inDoubt || before?.inDoubt === true });
  const written = agent.writer.write('decideOperation', { operationId: id, decision }, somebody);
  await heard(written.then(() => agent.control.wake()));
}

/** Nobody waits for an answer that a dead process will never give. */
async function heard(answer: Promise<unknown>): Promise<void> {
  const turn = new Promise<void>((resolve) => {
    setImmediate(resolve);
  });
  await Promise.race([answer.catch(() => undefined), turn]);
}

/** Callers wait for the upstream (`Prefer: wait`). */
const wait: Trouble = {};

/** Late requests arrive just within the fence. */
const fence: Trouble = {
  begin: ({ network }) => network.change({ nearFence: true }),
};

/** There are three products, and the secret of one is rolled before the agent is told. */
const products: Trouble = {
  make({ agent, ledger, configuration, random }) {
    const [secret, name] = random.pick([...ledger.products] as [[string, string], ...[string, string][]]);
    if (random.chance(0.5)) {
      ledger.products.delete(secret);
      ledger.products.set(`${secret}!`, name);
    } else {
      tellSecrets({ agent, ledger, configuration });
    }
  },
  heal: tellSecrets,
};

/** The configuration gets the secrets that are right now, and is reloaded. */
function tellSecrets({
  agent,
  ledger,
  configuration,
}: Pick<World, 'agent' | 'ledger' | 'configuration'>): void {
  for (const [secret, name] of ledger.products) configuration.secrets.set(name, secret);
  if (!agent.isDead) agent.sync.uplink.retryCredentials();
}

/** The upstream finds a key in any letter case, and callers type it in several. */
const spellings: Trouble = {};

/** The upstream refuses changes for good: 400 and 422. */
const refusals: Trouble = {
  make: ({ network, random }) => network.change({ declining: random.pick([0, 0, 0.1, 0.5]) }),
};

/** One key, or one thing that is asked of it, fails every time; it stays so at rest. */
const poison: Trouble = {
  make({ network, random }, key) {
    const what = random.pick([null, null, 'verify', 'usage', 'decrease', 'disable', 'enable'] as const);
    const how = random.pick(['error_before', 'error_after', 'garbage_after'] as const);
    network.change({ poison: random.chance(0.6) ? { subject: key.toLowerCase(), what, how } : null });
  },
};

/** A gateway answers 404 with an object: to everything, to one endpoint, or about one key. */
const gateway: Trouble = {
  make({ network, random }, key) {
    const subject = random.chance(0.5) ? key.toLowerCase() : null;
    const what = random.pick([null, 'verify', 'usage', 'decrease', 'disable', 'enable'] as const);
    network.change({ noRoute: random.chance(0.5) ? { subject, what } : null });
  },
};

/** The seller takes a license off the books, and puts it back. */
const removal: Trouble = {
  make: ({ ledger, random }, key) => ledger.setRemoved(key, random.chance(0.4)),
  heal({ ledger, keys }) {
    for (const key of keys) ledger.setRemoved(key, false);
  },
};

/** Backups are made, and restored in place. */
const restore: Trouble = {
  async make(world) {
    if (world.random.chance(0.6)) world.makeBackup();
    else await world.restore('in place');
  },
};

/** The state directory is moved, or a copy of it from another day is started elsewhere. */
const copy: Trouble = {
  async make(world) {
    const act = world.random.pick(['back up', 'back up', 'move', 'start a copy'] as const);
    if (act === 'back up') world.makeBackup();
    else if (act === 'move') await world.moveElsewhere();
    else await world.restore('elsewhere');
  },
};

/** The upstream is a Latchkey, which names its instance, and is restored from a backup, moved, or sought elsewhere. */
const replacement: Trouble = {
  begin: ({ network }) => network.change({ instance: 1 }),
  async make(world) {
    const { ledger, network, random, configuration } = world;
    const act = random.pick(['back up', 'back up', 'restore', 'move', 'readdress'] as const);
    if (act === 'readdress') {
      configuration.baseUrl = random.pick(['https://upstream.example', 'https://store.example']);
      return await world.restart();
    }
    if (act === 'back up') ledger.backUp();
    if (act === 'restore') ledger.restore();
    if (act !== 'back up') network.change({ instance: (network.weather.instance ?? 0) + 1 });
  },
};

/** The clock of the upstream is wrong, now by this much, now by that, and some answers do not say what time it is. */
const dates: Trouble = {
  make({ network, random }) {
    const datesAheadMs = 3_600_000 * random.pick([0, 0, -48, -1, 1, 48, 24 * 60, -24 * 60]);
    network.change({ datesAheadMs, isUndated: random.chance(0.2) });
  },
};

/** The configuration is changed and reloaded. */
const policy: Trouble = {
  begin: ({ configuration }) => {
    configuration.writers = 'single';
  },
  make({ configuration, random, troubles: ours }) {
    configuration.onDoubt = random.pick(['infer', 'hold']);
    configuration.lanes = random.between(1, 4);
    // From then on others may write.
    if (ours.has('others')) configuration.writers = 'many';
  },
};

/** The disk is full for a while. */
const full: Trouble = {
  make: ({ faults, random }) => {
    faults.isFull = random.chance(0.5);
  },
};

/** A cache on the way answers reads where it may, or without caring whether it may. */
const cache: Trouble = {
  begin: ({ network, random }) => network.change({ cacheIsStubborn: random.chance(0.5) }),
  make: ({ network, random }) => network.change({ caching: random.pick([0, 0.3, 1]) }),
};

/** The upstream asks to be left alone for minutes. */
const patience: Trouble = {
  begin: ({ network }) => network.change({ longestWaitS: 600 }),
};

/** The seller creates and removes other coupons, of which there are more than fit on one page. */
const coupons: Trouble = {
  begin({ ledger }) {
    for (let n = 0; n < 100; n += 1) ledger.createCouponElsewhere(`SELLER-${n}`);
  },
  make({ ledger, random }) {
    if (random.chance(0.3)) ledger.createCouponElsewhere(`SELLER-${ledger.coupons.length}-${random.draw()}`);
    else ledger.removeCouponElsewhere((code) => code.startsWith('SELLER'));
  },
};

/** A step after the commit of a change fails once. */
const commit: Trouble = {
  make: ({ faults, random }) => {
    faults.afterCommit = random.pick(['keep', 'read', null]);
  },
};

export const troubles: Readonly<Record<TroubleName, Trouble>> = {
  others,
  people,
  wait,
  fence,
  products,
  spellings,
  refusals,
  poison,
  gateway,
  removal,
  restore,
  copy,
  replacement,
  dates,
  policy,
  full,
  cache,
  patience,
  coupons,
  commit,
};

const names = Object.keys(troubles) as TroubleName[];

/** Each seed has some of the troubles, so that each is seen with and without each other. */
export function drawTroubles(random: SeededRandom): TroubleName[] {
  return names.filter(() => random.chance(0.2));
}
