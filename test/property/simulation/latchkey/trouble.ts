import { idempotencyKeyHeader } from '../../../../src/domain/header-names.ts';
import type { SeededRandom } from '../seeded-random.ts';
import { headerOf, other, productKey } from './authority.ts';
import { changeEnd, changeGrace, healDevices, placeDevices, troubleDevice } from './ends.ts';
import type { Site } from './site.ts';
import type { LatchkeyTroubleName, LatchkeyWorld } from './world.ts';

/** One kind of trouble, which a seed has or has not. */
type Trouble = {
  begin?: (world: LatchkeyWorld) => void | Promise<void>;
  make?: (world: LatchkeyWorld, site: Site, key: string) => void | Promise<void>;
  heal?: (world: LatchkeyWorld) => void | Promise<void>;
  /** Troubles that a seed does not have at the same time. */
  without?: readonly LatchkeyTroubleName[];
};

const somebody = { actor: 'somebody', requestId: null, idempotency: null };
const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const forEver = new AbortController().signal;

/** Of a dead process nothing is heard. */
async function heard(answer: Promise<unknown>): Promise<void> {
  const turn = new Promise<void>((resolve) => {
    setImmediate(resolve);
  });
  await Promise.race([answer.catch(() => undefined), turn]);
}

/** Several agents write the same keys. */
const others: Trouble = {};

/** An agent has another agent as its upstream. */
const chain: Trouble = {};

/** The seller refunds, enables and disables, and other programs count. */
const seller: Trouble = {
  async make({ authority, random }, _, key) {
    await authority.changeElsewhere(key, random.pick(['refund', 'disable', 'enable', 'enable', 'usage']));
  },
};

/** Requests arrive up to an hour late. */
const late: Trouble = {
  begin: (world) => world.changeWeather({ latestMs: hourMs }),
};

/** A gateway hides the change feed, for a short or long time. Changes go on. */
const gateway: Trouble = {
  async make(world) {
    const { networks, random } = world;
    random.pick(networks as [(typeof networks)[0]]).change({
      gateway: random.pick(['missing', 'nonsense', 'page', null]),
    });
    if (random.chance(0.2)) await world.pass(hourMs);
  },
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

/** Another store takes the place of the authority. */
const anotherStore: Trouble = {
  async make({ authority, random }) {
    if (random.chance(0.2)) await authority.becomeAnotherStore();
  },
};

/** Agents are restored from backups, by the command or by a start elsewhere. */
const agentRestore: Trouble = {
  async make({ random }, site) {
    if (random.chance(0.6)) site.backUp();
    else await site.restore(random.pick(['restore', 'elsewhere']));
  },
};

/** An agent loses its state directory: mostly the one in the middle of a chain. */
const lostState: Trouble = {
  async make({ random, sites }, site) {
    if (random.chance(0.2)) await (sites.find(({ isMiddle }) => isMiddle) ?? site).lose();
  },
};

/** A machine is put back to an earlier snapshot, and its agent cannot see that. */
const rollback: Trouble = {
  async make({ random }, site) {
    if (random.chance(0.6)) site.backUp();
    else await site.restore('silently');
  },
};

/** A state directory is copied, and both agents run. */
const copy: Trouble = {
  async make({ random, sites }, site) {
    if (sites.length > 3 || !random.chance(0.3)) return;
    const copied = await site.copy(random.chance(0.5));
    sites.push(copied);
    await copied.start();
  },
};

/** The secret of the product is rotated before the agents are told. */
const secrets: Trouble = {
  make(world) {
    if (world.random.chance(0.5)) world.authority.rotate();
    else world.tellSecret();
  },
  heal: (world) => world.tellSecret(),
};

/** A program uses the key of a change that was carried out: for another license, and for that of another product. */
const stranger: Trouble = {
  without: ['another_store'],
  async make({ random, networks: [network], authority, keys, broken, configuration, clock }) {
    const [first, ...rest] = network?.keyed ?? [];
    if (first === undefined || configuration.secrets.get(productKey) !== authority.secret) return;
    const request = random.pick([first, ...rest]);
    const operation = headerOf(request, idempotencyKeyHeader) ?? '';
    const isOther = random.chance(0.5);
    const lines = authority.books.of(operation);
    const line = lines.find(({ subject }) => keys.has(subject));
    const key = isOther ? other.licenseKey : [...keys.keys()].find((each) => each !== line?.subject);
    if (line === undefined || key === undefined || clock.reading().monotonic - line.at > 500 * hourMs) return;
    const headers = {
      ...(request.headers as object),
      'product-secret-key': isOther ? other.secret : authority.secret,
    };
    const before = authority.license(key).uses;
    const sent = { ...request, path: '/api/v2/license/usage', headers, body: `license_key=${key}` };
    const response = await authority.handle(sent, forEver);
    // Since the request was recorded, the authority was restored.
    if (response?.text.includes('other_store') === true) return;
    const counted = authority.license(key).uses - before;
    const due = isOther && !lines.some(({ subject }) => subject === key) ? 1 : 0;
    if (counted !== due || (!isOther && !response?.text.includes('idempotency_key_reused')))
      broken.push(`stranger: ${operation} of ${line.subject} was used for ${key}: ${response?.text}`);
  },
};

/** The wall clocks of agents are a day ahead or behind. */
const clocks: Trouble = {};

/** All agents are off for a month, often with changes that were sent and not answered. */
const month: Trouble = {
  // What an agent in the middle has taken over 29 days ago and lost is not sent again (src/sync/BETWEEN-LATCHKEYS.md, Restored stores).
  without: ['rollback', 'copy', 'lost_state'],
  async make(world, site, key) {
    const { random, sites, authority } = world;
    // What was delivered before a restore that an agent learns of a month later is too old to be sent again.
    if (!random.chance(0.1) || !sites.every((each) => hasNoticedRestores(world, each))) return;
    for (const trigger of ['usage', 'decrease', 'disable'] as const) site.change(key, trigger);
    await world.pass(random.between(1, 400));
    for (const { agent } of sites) agent.die();
    await world.pass(31 * 24 * hourMs);
    authority.forgetBackup();
    await authority.prune();
    for (const each of sites) await each.restart();
  },
};

function hasNoticedRestores({ sites, networks, authority }: LatchkeyWorld, site: Site): boolean {
  const middle = site.network === networks[0] ? undefined : sites.find(({ isMiddle }) => isMiddle);
  const above = (middle ?? authority).machine.transaction.settings;
  const { settings } = site.machine.transaction;
  return settings.get('upstream_epoch') === above.get('sync_epoch') && (settings.get('resume') ?? '') === '';
}

/** A person pauses, resumes, uses sync now, and decides about operations that wait for that. */
const person: Trouble = {
  async make({ random, decided }, site) {
    const { agent } = site;
    if (agent.isDead) return;
    const dice = random.fraction();
    if (dice < 0.3) await heard(agent.control.now(somebody));
    else if (dice < 0.4) await heard(agent.control.pause(somebody));
    else if (dice < 0.6) await heard(agent.control.resume(somebody));
    else {
      const open = site
        .operations()
        .filter(({ state, held }) => held === 1 || state === 'dead' || state === 'conflicted');
      const [first, ...rest] = open;
      if (first === undefined) return;
      const { id } = random.pick([first, ...rest]);
      decided.add(id);
      const decision = random.pick(['retry', 'drop', 'confirm'] as const);
      await heard(agent.writer.write('decideOperation', { operationId: id, decision }, somebody));
    }
  },
  async heal({ sites }) {
    for (const { agent } of sites) await agent.control.resume(somebody);
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
const coupons: Trouble = {};

/** The seller gives licenses an end and a grace, moves both, renews licenses and removes the end. Devices have leases. */
const ends: Trouble = {
  begin: placeDevices,
  async make(world, _, key) {
    const { random } = world;
    const dice = random.fraction();
    if (dice < 0.4) await changeEnd(world, key);
    else if (dice < 0.5) await changeGrace(world, random.pick([0, minuteMs, 20 * minuteMs]));
    else troubleDevice(world);
  },
  heal: healDevices,
};

/** The wall clocks of agents and devices are set back. */
const setBack: Trouble = {
  without: ['clocks'],
  async make({ random, devices }, { agent, clock }) {
    const byMs = -random.pick([minuteMs, hourMs, 24 * hourMs]);
    // As the daemon does every minute.
    if (!agent.isDead) await heard(agent.markTime());
    clock.jumpWall(byMs);
    for (const device of devices) if (random.chance(0.3)) device.clock.jumpWall(byMs);
  },
  heal({ sites, devices, clock: right }) {
    for (const { clock } of [...sites, ...devices]) clock.jumpWall(right.now() - clock.reading().wall);
  },
};

export const latchkeyTroubles: Readonly<Record<LatchkeyTroubleName, Trouble>> = {
  others,
  chain,
  seller,
  late,
  gateway,
  authority_restart: authorityRestart,
  authority_restore: authorityRestore,
  another_store: {
    ...anotherStore,
    without: ['authority_restore', 'agent_restore', 'lost_state', 'rollback'],
  },
  agent_restore: agentRestore,
  lost_state: lostState,
  rollback,
  copy,
  secrets,
  stranger,
  clocks,
  month,
  person,
  full,
  bursts,
  coupons,
  ends,
  set_back: setBack,
};

const names = Object.keys(latchkeyTroubles) as LatchkeyTroubleName[];

/** Each seed has a share of the troubles, so that each is seen with and without each other. */
export function drawLatchkeyTroubles(random: SeededRandom): LatchkeyTroubleName[] {
  const drawn = names.filter(() => random.chance(0.22));
  return drawn.filter(
    (name) => latchkeyTroubles[name].without?.some((each) => drawn.includes(each)) !== true,
  );
}
