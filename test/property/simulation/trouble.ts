import type { Decision } from '../../../src/service/outbox/control/decide-operation.ts';
import type { SeededRandom } from './seeded-random.ts';
import { type TroubleName, type World } from './world.ts';

/** One kind of trouble, which a seed has or has not. */
export type Trouble = {
  begin?: (world: World) => void;
  make?: (world: World, key: string) => void | Promise<void>;
  heal?: (world: World) => void;
};

const somebody = { actor: 'somebody', idempotency: null };

/** Other programs change the counts of the same keys. */
const others: Trouble = {
  make: ({ ledger, random }, key) => ledger.changeElsewhere(key, random.pick(['usage', 'decrease'])),
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
  const wasApplied = ledger.entries.some(({ operation }) => operation === id);
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
  begin: ({ network }) => {
    network.weather = { ...network.weather, nearFence: true };
  },
};

/** There are three products. */
const products: Trouble = {};

/** The upstream finds a key in any letter case, and callers type it in several. */
const spellings: Trouble = {};

export const troubles: Readonly<Record<TroubleName, Trouble>> = {
  others,
  people,
  wait,
  fence,
  products,
  spellings,
};

/** The troubles that seeds draw from. */
const drawn: readonly TroubleName[] = ['others', 'fence', 'products'];

/** Each seed has some of the troubles, so that each is seen with and without each other. */
export function drawTroubles(random: SeededRandom): TroubleName[] {
  return drawn.filter(() => random.chance(0.35));
}
