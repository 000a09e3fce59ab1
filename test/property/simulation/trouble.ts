import type { Decision } from '../../../src/domain/outbox/explanation.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { CatalogueProduct, TroubleName, World } from './world.ts';

/** One kind of trouble, which a seed has or has not. */
export type Trouble = {
  begin?: (world: World) => void;
  make?: (world: World, key: string) => void | Promise<void>;
  heal?: (world: World) => void;
};

const somebody = { actor: 'somebody', requestId: null, idempotency: null };

/** Other programs count uses of the same keys. */
const others: Trouble = {
  make({ ledger, random, configuration }, key) {
    if (configuration.writers === 'many') ledger.changeElsewhere(key, random.pick(['usage', 'decrease']));
  },
};

/** A person decides about operations, uses sync now, and pauses, but never confirms an operation that was not applied. */
const people: Trouble = {
  async make(world) {
    const { agent, random } = world;
    if (agent.isDead) return;
    const dice = random.fraction();
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
  const inDoubt = progress.state === 'uncertain' || ('maybeApplied' in progress && progress.maybeApplied);
  // It may be carried out although nobody hears of it: the process may die of it.
  history.decided.set(id, { inDoubt: inDoubt || before?.inDoubt === true });
  const written = agent.writer.write('decideOperation', { operationId: id, decision }, somebody);
  await heard(written.then(() => agent.control.wake()));
}

/** Callers of a dead process stop waiting. */
async function heard(answer: Promise<unknown>): Promise<void> {
  const turn = new Promise<void>((resolve) => {
    setImmediate(resolve);
  });
  await Promise.race([answer.catch(() => undefined), turn]);
}

/** Callers wait for the upstream (`Prefer: wait`). */
const wait: Trouble = {};

/** Late requests arrive just within the reconcile delay. */
const lateArrival: Trouble = {
  begin: ({ network }) => network.change({ lateArrivals: true }),
};

/** There are three products, and the secret of one is rotated before the agent is told. */
const products: Trouble = {
  make(world) {
    const { ledger, random } = world;
    const [secret, name] = random.pick([...ledger.products] as [[string, string], ...[string, string][]]);
    if (random.chance(0.5)) {
      ledger.products.delete(secret);
      ledger.products.set(`${secret}!`, name);
    } else {
      tellSecrets(world);
    }
  },
  heal: tellSecrets,
};

/** The configuration gets the secrets that are right now, and is reloaded. */
function tellSecrets(world: World): void {
  for (const [secret, name] of world.ledger.products) {
    const product = world.catalogue.get(name);
    // A removed product that came back with another key and another secret would be recognized by nothing.
    if (product !== undefined && !product.isRemoved) product.secret = secret;
  }
  world.reload();
}

/** Products get other keys, swap their keys, are removed, and are put back, also under another key. */
const renames: Trouble = {
  make(world) {
    const { random, troubles: ours, faults } = world;
    // A product whose key and secret have both changed is recognized by nothing.
    const isLost = ours.has('products') && (ours.has('restore') || ours.has('copy'));
    if (isLost || faults.isFull) return;
    const catalogue = [...world.catalogue.values()] as [CatalogueProduct, ...CatalogueProduct[]];
    const [one, other] = [random.pick(catalogue), random.pick(catalogue)];
    const act = random.pick(['rename', 'rename', 'swap', 'swap', 'remove', 'put back'] as const);
    if (act === 'swap') [one.key, other.key] = [other.key, one.key];
    if (act === 'remove') world.remove(one);
    if (act === 'put back') one.isRemoved = false;
    if (act === 'rename' || (act === 'put back' && random.chance(0.5))) one.key = newKey(world);
    world.reload();
  },
  heal(world) {
    for (const product of world.catalogue.values()) product.isRemoved = false;
    world.reload();
    tellSecrets(world);
  },
};

/** A key that no product has; often one that a product had. */
function newKey({ catalogue, random }: World): string {
  const taken = new Set([...catalogue.values()].map(({ key }) => key));
  const free = Array.from({ length: 6 }, (_, n) => `product-${n}`).filter((key) => !taken.has(key));
  return random.pick(free as [string, ...string[]]);
}

/** The upstream finds a key in any letter case, and callers type it in several. */
const spellings: Trouble = {};

/** The upstream refuses changes permanently: 400 and 422. */
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

/** The upstream is configured at another address. */
const replacement: Trouble = {
  async make(world) {
    const { random, configuration } = world;
    configuration.baseUrl = random.pick(['https://upstream.example', 'https://store.example']);
    await world.restart();
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
    configuration.onUncertain = random.pick(['infer', 'hold']);
    configuration.concurrency = random.between(1, 4);
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

/** The upstream sends Retry-After of minutes. */
const patience: Trouble = {
  begin: ({ network }) => network.change({ longestWaitS: 600 }),
};

/** The seller creates and removes other coupons, of which there are more than fit on one page. */
const coupons: Trouble = {
  begin({ ledger }) {
    for (let n = 0; n < 100; n += 1) ledger.createCouponElsewhere(`SELLER-${n}`);
  },
  make({ ledger, random }) {
    if (random.chance(0.3))
      ledger.createCouponElsewhere(`SELLER-${ledger.coupons.length}-${random.fraction()}`);
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
  late_arrival: lateArrival,
  products,
  renames,
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

/** Each seed has a share of the troubles, so that each is seen with and without each other. */
export function drawTroubles(random: SeededRandom, share: number): TroubleName[] {
  return names.filter(() => random.chance(share));
}
