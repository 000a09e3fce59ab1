import { existsSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { traced } from '../../../src/domain/outbox/trace.ts';
import { StorageError } from '../../../src/service/ports.ts';
import type { Transaction } from '../../../src/service/tables.ts';
import { prepareCommitter, type CommandOutcome, type Committer } from '../../../src/store/sqlite/commit.ts';
import { buildOperation } from '../../support/builders/operation-builders.ts';
import { isWindows } from '../../support/platform.ts';
import { createTestStore, type TestStore, buildLicense } from '../../support/builders/store-builders.ts';

type Command = (transaction: Transaction) => unknown;

const done = { ok: true };
const refused = { ok: false };

function createCommitter(store: TestStore): Committer<Command> {
  return prepareCommitter<Command>(store.writing, {
    run: (transaction, command) => command(transaction),
    isFailure: (result) => result === refused,
  });
}

function set(name: string): Command {
  return ({ settings }) => {
    settings.set(name, 'set');
    return done;
  };
}

function written(store: TestStore, names: readonly string[]): string[] {
  return names.filter((name) => store.reading.reader.settings.get(name) !== null);
}

function faults(outcomes: readonly CommandOutcome[]): (string | null)[] {
  return outcomes.map((outcome) => {
    if ('result' in outcome) return null;
    return outcome.error instanceof StorageError ? outcome.error.fault : String(outcome.error);
  });
}

/** An error as node:sqlite throws them. */
function sqliteError(errcode: number): Error {
  return Object.assign(new Error('from SQLite'), { code: 'ERR_SQLITE_ERROR', errcode });
}

test('the commands of a batch are committed together and answered in order', async () => {
  await using store = createTestStore();
  const outcomes = await createCommitter(store).commitBatch([
    set('a'),
    () => written(store, ['a']),
    set('b'),
  ]);
  // The second command looked from outside, while nothing was committed.
  expect(outcomes).toEqual([{ result: done }, { result: [] }, { result: done }]);
  expect(written(store, ['a', 'b'])).toEqual(['a', 'b']);
});

test('what happened to operations is told of the commands that were committed, and of no other', async () => {
  await using store = createTestStore();
  const tracing =
    (name: string, end: () => unknown): Command =>
    ({ operations, trace }) => {
      trace.add(traced('queued', operations.add(buildOperation({ id: name }))));
      return end();
    };
  const outcomes = await createCommitter(store).commitBatch([
    tracing('a', () => done),
    tracing('b', () => refused),
    tracing('c', () => {
      throw new TypeError('wrong');
    }),
    set('d'),
    tracing('e', () => done),
  ]);
  const told = outcomes.map((outcome) => ('traced' in outcome ? outcome.traced?.map(({ id }) => id) : null));
  expect(told).toEqual([['a'], null, null, null, ['e']]);
});

test('a setting that was undone is not remembered, one that was not is, also by the next batch', async () => {
  await using store = createTestStore();
  const committer = createCommitter(store);
  const setTo =
    (value: string, end: () => unknown): Command =>
    ({ settings }) => {
      settings.set('a', value);
      return end();
    };
  const look: Command = ({ settings }) => settings.get('a');
  const failing = (): never => {
    throw new TypeError('wrong');
  };
  const resultsOf = async (...commands: readonly Command[]): Promise<unknown[]> =>
    (await committer.commitBatch(commands)).map((outcome) =>
      'result' in outcome ? outcome.result : 'failed',
    );
  expect(
    await resultsOf(
      look,
      setTo('1', () => done),
      look,
    ),
  ).toEqual([null, done, '1']);
  expect(
    await resultsOf(
      look,
      setTo('2', () => refused),
      look,
    ),
  ).toEqual(['1', refused, '1']);
  expect(await resultsOf(setTo('3', failing), look)).toEqual(['failed', '1']);
  expect(await resultsOf(setTo('4', failing))).toEqual(['failed']);
  expect(await resultsOf(look)).toEqual(['1']);
  store.writing.transaction.settings.set('a', '5');
  expect(await resultsOf(look)).toEqual(['5']);
});

test('a refusal writes nothing and harms no other', async () => {
  await using store = createTestStore();
  const refusing: Command = ({ settings }) => {
    settings.set('b', 'set');
    return refused;
  };
  const outcomes = await createCommitter(store).commitBatch([set('a'), refusing, set('c')]);
  expect(outcomes).toEqual([{ result: done }, { result: refused }, { result: done }]);
  expect(written(store, ['a', 'b', 'c'])).toEqual(['a', 'c']);
});

test('commands are run a second time only when another one of their batch had written what it then refused', async () => {
  await using store = createTestStore();
  const committer = createCommitter(store);
  let runs = 0;
  const counted: Command = (transaction) => {
    runs += 1;
    return set('a')(transaction);
  };
  await committer.commitBatch([counted, () => refused]);
  expect(runs).toBe(1);
  const refusing: Command = (transaction) => {
    set('b')(transaction);
    return refused;
  };
  await committer.commitBatch([counted, refusing]);
  expect(runs).toBe(3);
  await committer.commitBatch([refusing]);
  expect(written(store, ['a', 'b'])).toEqual(['a']);
});

test.for([
  ['refuses', () => refused, { result: refused }],
  [
    'throws',
    () => {
      throw new TypeError('wrong');
    },
    { error: new TypeError('wrong') },
  ],
] as const)('a command alone that %s writes nothing, and the next one is taken', async ([, end, outcome]) => {
  await using store = createTestStore();
  const committer = createCommitter(store);
  const failing: Command = ({ settings }) => {
    settings.set('a', 'set');
    return end();
  };
  expect(await committer.commitBatch([failing])).toEqual([outcome]);
  expect(await committer.commitBatch([set('b')])).toEqual([{ result: done }]);
  expect(written(store, ['a', 'b'])).toEqual(['b']);
});

test('a command that throws writes nothing and harms no other', async () => {
  await using store = createTestStore();
  const error = new TypeError('wrong');
  const throwing: Command = ({ settings }) => {
    settings.set('b', 'set');
    throw error;
  };
  const outcomes = await createCommitter(store).commitBatch([set('a'), throwing, set('c')]);
  expect(outcomes).toEqual([{ result: done }, { error }, { result: done }]);
  expect(written(store, ['a', 'b', 'c'])).toEqual(['a', 'c']);
});

test('a command that breaks a rule of the schema is only its own error', async () => {
  await using store = createTestStore();
  const committer = createCommitter(store);
  const breaking: Command = ({ licenses }) => {
    licenses.add(buildLicense({ uses: 0.5 }));
  };
  expect(faults(await committer.commitBatch([set('a'), breaking, set('c')]))).toEqual([
    null,
    expect.stringContaining('cannot store REAL value in INTEGER column'),
    null,
  ]);
  expect(written(store, ['a', 'c'])).toEqual(['a', 'c']);
  expect(committer.broken).toBeNull();
});

test('a batch that SQLite took back whole is done again one by one', async () => {
  await using store = createTestStore();
  const committer = createCommitter(store);
  const filling: Command = () => {
    store.writing.database.exec('ROLLBACK');
    throw sqliteError(13);
  };
  const outcomes = await committer.commitBatch([set('a'), filling, set('c')]);
  expect(faults(outcomes)).toEqual([null, 'full', null]);
  expect(written(store, ['a', 'c'])).toEqual(['a', 'c']);
  expect(committer.broken).toBeNull();
});

test('a batch that was taken back behind the back of a command is done again one by one', async () => {
  await using store = createTestStore();
  const swallowing: Command = () => {
    store.writing.database.exec('ROLLBACK');
    return done;
  };
  const outcomes = await createCommitter(store).commitBatch([set('a'), swallowing, set('c')]);
  expect(faults(outcomes)).toEqual([null, 'Error: the transaction was rolled back', null]);
  expect(written(store, ['a', 'c'])).toEqual(['a', 'c']);
});

test.for([10, 1034, 11, 26])('after the storage error %i nothing more is taken', async (errcode) => {
  await using store = createTestStore();
  const committer = createCommitter(store);
  const failing: Command = () => {
    throw sqliteError(errcode);
  };
  expect(faults(await committer.commitBatch([set('a'), failing, set('c')]))).toEqual([
    'failed',
    'failed',
    'failed',
  ]);
  expect(committer.broken).toMatchObject({ fault: 'failed', cause: { errcode } });
  let ran = false;
  const outcomes = await committer.commitBatch([() => (ran = true)]);
  expect(outcomes).toEqual([{ error: committer.broken }]);
  expect(ran).toBe(false);
  expect(written(store, ['a', 'c'])).toEqual([]);
});

test('nobody knows of the commands whose COMMIT failed: what it wrote may be found after a new start', async () => {
  await using store = createTestStore();
  const { database } = store.writing;
  const failing = Object.create(database, {
    isTransaction: { get: () => database.isTransaction },
    prepare: {
      value(sql: string) {
        const statement = database.prepare(sql);
        if (sql !== 'COMMIT') return statement;
        const run = (): never => {
          statement.run();
          throw sqliteError(1034);
        };
        return { run };
      },
    },
  }) as DatabaseSync;
  const committer = prepareCommitter<Command>(
    { ...store.writing, database: failing },
    { run: (transaction, command) => command(transaction), isFailure: () => false },
  );
  expect(faults(await committer.commitBatch([set('a'), set('b')]))).toEqual([
    'commit_failed',
    'commit_failed',
  ]);
  expect(written(store, ['a', 'b'])).toEqual(['a', 'b']);
  expect(faults(await committer.commitBatch([set('c')]))).toEqual(['failed']);
  expect(written(store, ['c'])).toEqual([]);
});

test('while another program holds the file writes fail, and go on when it lets go', async () => {
  await using store = createTestStore();
  const committer = createCommitter(store);
  using other = new DatabaseSync(store.databasePath);
  other.exec('BEGIN IMMEDIATE');
  expect(faults(await committer.commitBatch([set('a'), set('b')]))).toEqual(['failed', 'failed']);
  other.exec('ROLLBACK');
  expect(committer.broken).toBeNull();
  expect(faults(await committer.commitBatch([set('a')]))).toEqual([null]);
});

test('a second batch while one is running is refused, and writes nothing into its transaction', async () => {
  await using store = createTestStore();
  const committer = createCommitter(store);
  const waited = Promise.withResolvers<unknown>();
  const waiting: Command = ({ settings }) => {
    settings.set('a', 'set');
    return waited.promise;
  };
  const first = committer.commitBatch([waiting]);
  await expect(committer.commitBatch([set('b')])).rejects.toThrow('another batch is running');
  waited.resolve(done);
  expect(await first).toEqual([{ result: done }]);
  expect(written(store, ['a', 'b'])).toEqual(['a']);
});

const descriptors = '/proc/self/fd';

test.runIf(!isWindows && existsSync(descriptors))(
  'what a large command must be able to undo lies in a file of the state directory, gone with its process (skipped where there is no /proc)',
  async () => {
    await using store = createTestStore();
    const temporaryFiles = (): string[] =>
      readdirSync(descriptors)
        .map((name) => readIfLink(join(descriptors, name)))
        .filter((path) => path.includes('etilqs_') && path.startsWith(store.directory));
    let during: string[] = [];
    const large: Command = ({ settings }) => {
      for (let count = 0; count < 300; count += 1) settings.set(`name-${count}`, 'x'.repeat(3000));
      during = temporaryFiles();
      return done;
    };
    const committer = createCommitter(store);
    const refusing: Command = (transaction) => {
      large(transaction);
      return refused;
    };
    await committer.commitBatch([large, refusing]);
    expect(during).toEqual([expect.stringMatching(/ \(deleted\)$/)]);
    expect(temporaryFiles()).toEqual([]);
  },
);

function readIfLink(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

test.for([
  [778, 'full'],
  [4874, 'full'],
  [11, 'failed'],
] as const)(
  'an error %i of SQLite on a disk that takes no more, as by its quota, means %s',
  async ([errcode, fault]) => {
    await using store = createTestStore();
    const committer = prepareCommitter<Command>(store.writing, {
      run: (transaction, command) => command(transaction),
      isFailure: () => false,
      isOutOfSpace: () => true,
    });
    const outcomes = await committer.commitBatch([
      () => {
        throw sqliteError(errcode);
      },
    ]);
    expect(faults(outcomes)).toEqual([fault]);
    expect(committer.broken === null).toBe(fault === 'full');
  },
);
