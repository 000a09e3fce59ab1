import type { SeededRandom } from '../seeded-random.ts';
import type { LatchkeyTroubleName, LatchkeyWorld, Site } from './world.ts';

/** One kind of trouble, which a seed has or has not. */
type Trouble = {
  begin?: (world: LatchkeyWorld) => void;
  make?: (world: LatchkeyWorld, site: Site, key: string) => void | Promise<void>;
  heal?: (world: LatchkeyWorld) => void | Promise<void>;
};

const somebody = { actor: 'somebody', requestId: null, idempotency: null };
const hourMs = 3_600_000;

/** Of a dead process nothing is heard. */
async function heard(answer: Promise<unknown>): Promise<void> {
  const turn = new Promise<void>((resolve) => {
    setImmediate(resolve);
  });
  await Promise.race([answer.catch(() => undefined), turn]);
}

/** Several agents write the same keys. */
const others: Trouble = {};

/** The seller refunds, enables, and other programs count. */
const seller: Trouble = {
  async make({ authority, random }, _, key) {
    await authority.changeElsewhere(key, random.pick(['refund', 'enable', 'usage']));
  },
};

/** Requests to `/sync/v1` arrive up to an hour late. */
const late: Trouble = {
  begin({ network, troubles }) {
    // The plain protocol relies on its reconcile delay.
    if (!troubles.has('person')) network.change({ latestMs: hourMs });
  },
};

/** A gateway hides `/sync/v1`, for a short or long time. */
const gateway: Trouble = {
  async make(world) {
    const { network, random } = world;
    network.change({ gateway: random.pick(['missing', 'nonsense', 'page', null]) });
    if (random.chance(0.2)) await world.pass(hourMs);
  },
  heal: ({ network }) => network.change({ gateway: null }),
};

const authorityRestart: Trouble = {
  make: ({ authority }) => authority.restart(),
};

/** The authority is restored from a backup, often right after it has answered. */
const authorityRestore: Trouble = {
  async make({ authority, random }) {
    if (random.chance(0.6)) authority.backUp();
    else await authority.restore();
  },
};

/** Agents are restored from backups, by the command or by a start elsewhere. */
const agentRestore: Trouble = {
  async make({ random }, site) {
    if (random.chance(0.6)) site.backUp();
    else await site.restore(random.pick(['restore', 'elsewhere']));
  },
};

/** A machine is put back to an earlier snapshot, and its agent cannot see that. */
const rollback: Trouble = {
  async make({ random }, site) {
    // Only an agent that pushes can find out.
    if (!site.isPushing) return;
    if (random.chance(0.6)) site.backUp();
    else await site.restore('silently');
  },
};

/** A state directory is copied, and both agents run. */
const copy: Trouble = {
  async make(world, site) {
    const { random, sites } = world;
    if (sites.length > 3 || !random.chance(0.3)) return;
    const isKnown = !site.isPushing || random.chance(0.5);
    const copied = site.copy(isKnown);
    sites.push(copied);
    await copied.start();
  },
};

/** The secret of the product is rolled before the agents are told. */
const secrets: Trouble = {
  make(world) {
    if (world.random.chance(0.5)) world.authority.roll();
    else world.tellSecret();
  },
  heal: (world) => world.tellSecret(),
};

/** The upstream is plain until `/sync/v1` can be reached. */
const plainFirst: Trouble = {
  begin: ({ network }) => network.change({ gateway: 'missing' }),
  make({ network, random, troubles: ours }) {
    if (random.chance(0.1) && !ours.has('gateway')) network.change({ gateway: null });
  },
  heal: ({ network }) => network.change({ gateway: null }),
};

/** A person chooses the protocol, pauses, resumes and uses sync now. */
const person: Trouble = {
  async make(world, site) {
    const { random, doubted } = world;
    const { agent } = site;
    if (agent.isDead) return;
    const dice = random.fraction();
    if (dice < 0.3) await heard(agent.control.now(somebody));
    else if (dice < 0.4) await heard(agent.control.pause(somebody));
    else if (dice < 0.6) await heard(agent.control.resume(somebody));
    else if (dice < 0.8) await heard(agent.control.chooseProtocol('automatic', somebody));
    else {
      for (const id of site.machine.unfinished()) doubted.add(id);
      await heard(agent.control.chooseProtocol('plain', somebody));
    }
  },
  async heal({ sites }) {
    for (const { agent } of sites) {
      await agent.control.resume(somebody);
      await agent.control.chooseProtocol('automatic', somebody);
    }
  },
};

/** The disk is full for a while. */
const full: Trouble = {
  make({ faults, random }) {
    faults.isFull = random.chance(0.5);
  },
};

/** Many changes at once. */
const bursts: Trouble = {
  make({ random, keys }, site) {
    const [first = '', ...rest] = keys.keys();
    for (let index = random.between(5, 60); index > 0; index -= 1) {
      site.change(random.pick([first, ...rest]), random.pick(['usage', 'usage', 'decrease']));
    }
  },
};

/** Callers create, redeem and void coupons at each step (`coupons.ts`), besides all that they do to licenses. */
const coupons: Trouble = {
  begin({ authority, configuration }) {
    authority.apiKey = configuration.apiKey;
  },
};

export const latchkeyTroubles: Readonly<Record<LatchkeyTroubleName, Trouble>> = {
  others,
  seller,
  late,
  gateway,
  authority_restart: authorityRestart,
  authority_restore: authorityRestore,
  agent_restore: agentRestore,
  rollback,
  copy,
  secrets,
  plain_first: plainFirst,
  person,
  full,
  bursts,
  coupons,
};

const names = Object.keys(latchkeyTroubles) as LatchkeyTroubleName[];

/** Each seed has a share of the troubles, so that each is seen with and without each other. */
export function drawLatchkeyTroubles(random: SeededRandom): LatchkeyTroubleName[] {
  return names.filter(() => random.chance(0.25));
}
