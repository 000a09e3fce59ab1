import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { done } from '../../../../src/domain/problem/problem.ts';
import { hasPostgres, startPostgres, type PostgresServer } from '../../postgres/support/postgres.ts';
import { openNodes, writerOn } from '../../postgres/support/postgres-writer.ts';

describe.skipIf(!hasPostgres)('the series of an authority on PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
  });

  test('adds the counts that several nodes record for the same minute at the same time', async () => {
    await using databases = await openNodes(server, 3);
    const minute = Date.UTC(2026, 0, 1);
    const values = { verifies: 2, uses: 1, pending: null, oldestAgeS: null, upstream: null };
    const writes = databases.flatMap((database) =>
      [0, 60_000, 0].map((ms) => writerOn(database).write('recordSeries', { at: minute + ms, values })),
    );
    expect(await Promise.all(writes)).toEqual(Array.from(writes, () => done(null)));
    const [node] = databases;
    expect(await node?.reader.series.get(60, minute)).toMatchObject({ verifies: 12, uses: 6 });
    expect(await node?.reader.series.get(60, minute + 60_000)).toMatchObject({ verifies: 6, uses: 3 });
    expect(await node?.reader.series.get(600, minute)).toMatchObject({ verifies: 18, uses: 9 });
  });
});
