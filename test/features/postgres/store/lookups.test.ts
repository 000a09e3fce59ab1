import { expect, test } from 'vitest';
import { Lookups } from '../../../../src/features/postgres/store/shared-reads.ts';
import type { Row } from '../../../../src/features/postgres/store/statements.ts';

const statement = {
  name: 'colours',
  text: 'SELECT fruit, colour FROM fruits WHERE fruit = ANY ($1)',
  key: 'fruit',
};
/** Reads of a table that answers in an order of its own, and what it was asked for; `turn` ends a turn. */
function createReads() {
  const asked: (readonly string[])[] = [];
  const colours = new Map([
    ['apple', 'red'],
    ['plum', 'blue'],
  ]);
  let works: (() => void)[] = [];
  const given = { asked, colours, isAway: false };
  const reads = new Lookups(
    async (_, [keys]) => {
      const sought = keys as readonly string[];
      asked.push(sought);
      if (given.isAway) throw new Error('away');
      return [...colours]
        .filter(([fruit]) => sought.includes(fruit))
        .toReversed()
        .map(([fruit, colour]): Row => ({ fruit, colour }));
    },
    (work) => works.push(work),
  );
  const turn = (): void => {
    const all = works;
    works = [];
    for (const work of all) work();
  };
  return Object.assign(given, { read: (fruit: string) => reads.read(statement, fruit), turn });
}

test('what is read by one statement in one turn is one read, and each has its own row', async () => {
  const { read, turn, asked } = createReads();
  const rows = ['plum', 'apple', 'pear', 'plum'].map(read);
  expect(asked).toEqual([]);
  turn();
  const [plum, apple, pear, again] = await Promise.all(rows);
  expect([plum, apple, pear, again]).toEqual([
    { fruit: 'plum', colour: 'blue' },
    { fruit: 'apple', colour: 'red' },
    undefined,
    { fruit: 'plum', colour: 'blue' },
  ]);
  expect(asked).toEqual([['plum', 'apple', 'pear']]);
});

test('nobody is answered by a read that had left before', async () => {
  const { read, turn, asked, colours } = createReads();
  const first = read('plum');
  turn();
  colours.set('plum', 'green');
  const second = read('plum');
  turn();
  expect(await Promise.all([first, second])).toEqual([
    { fruit: 'plum', colour: 'blue' },
    { fruit: 'plum', colour: 'green' },
  ]);
  expect(asked).toHaveLength(2);
});

test('all that a read was for are told when it fails, and the next is another', async () => {
  const given = createReads();
  given.isAway = true;
  const rows = [given.read('plum'), given.read('pear')];
  given.turn();
  await Promise.all(rows.map((row) => expect(row).rejects.toThrow('away')));
  given.isAway = false;
  const row = given.read('apple');
  given.turn();
  expect(await row).toEqual({ fruit: 'apple', colour: 'red' });
});

test('one statement asks for 256 keys at most', async () => {
  const { read, turn, asked } = createReads();
  const rows = Array.from({ length: 300 }, (_, index) => read(`fruit ${index}`));
  turn();
  await Promise.all(rows);
  expect(asked.map(({ length }) => length)).toEqual([256, 44]);
});
