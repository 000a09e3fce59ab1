import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SignedRequest } from '../../../../src/features/leases/domain/lease.ts';
import { defaultLeaseTerms, type LeaseTerms } from '../../../../src/domain/catalogue.ts';
import type { Database } from '../../../../src/features/postgres/store/database.ts';
import type { PostgresWriter } from '../../../../src/features/postgres/store/writer.ts';
import { buildRequest, thumbprint } from '../../leases/support/activation-builders.ts';
import { page, product } from '../../../support/builders/store-builders.ts';
import { saidIn, signed } from '../../leases/support/lease-harness.ts';
import { hasPostgres, startPostgres, type PostgresServer } from '../support/postgres.ts';
import { openNodes, usesIn, writerOn } from '../support/postgres-writer.ts';

const day = 86_400_000;

describe.skipIf(!hasPostgres)('leases of an authority on PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
  });

  /** Two nodes, which issue leases on these terms. */
  async function issuers(terms: Partial<LeaseTerms>) {
    const databases = await openNodes(server, 2);
    await databases[0]?.lend(async (connection) => {
      await connection.begin(null, []);
      await connection.transaction.products.put({
        ...product,
        leaseTerms: { ...defaultLeaseTerms, ...terms },
      });
      await connection.commit();
    });
    const writers = databases.map((database) => writerOn(database));
    const [database] = databases as Database[];
    if (database === undefined) throw new Error('there is no node');
    return { database, writers, [Symbol.asyncDispose]: () => databases[Symbol.asyncDispose]() };
  }

  /** Sends requests to the nodes in turn, all at once. */
  async function answersTo(
    writers: readonly PostgresWriter[],
    requests: readonly SignedRequest[],
  ): Promise<string[]> {
    const command = { keyNotAfter: Date.now() + 400 * day, until: null, isFile: false, accountId: null };
    const results = requests.map(async (signedRequest, index) => {
      const writer = writers[index % writers.length];
      if (writer === undefined) throw new Error('there is no node');
      return saidIn(await writer.write('answerLeaseRequest', { signedRequest, ...command }));
    });
    return await Promise.all(results);
  }

  const take = (name: string): SignedRequest => signed(thumbprint(name), buildRequest());

  test('20 devices that ask two nodes at once for 3 seats get exactly 3 leases', async () => {
    await using nodes = await issuers({ seats: 3 });
    const requests = Array.from({ length: 20 }, (_, index) => take(`device-${index}`));
    const answers = await answersTo(nodes.writers, requests);
    expect(answers.filter((answer) => answer === 'lease')).toHaveLength(3);
    expect(answers.filter((answer) => answer === 'no_seat_left')).toHaveLength(17);
    expect(await nodes.database.reader.activations.count({ seatAt: Date.now() })).toBe(3);
  });

  test('a request that arrives at two nodes at once is carried out once', async () => {
    await using nodes = await issuers({ seats: 3 });
    const request = signed(thumbprint('a'), buildRequest({ uses: { recorded: 5, returned: 1 } }));
    const answers = await answersTo(
      nodes.writers,
      Array.from({ length: 6 }, () => request),
    );
    expect(new Set(answers)).toEqual(new Set(['lease']));
    expect(await usesIn(nodes.database)).toBe(4);
    expect(await nodes.database.reader.activations.list({}, page)).toHaveLength(1);
  });

  test('seats that are given back at once at two nodes use at most 3 moves', async () => {
    await using nodes = await issuers({ seats: 6 });
    const devices = Array.from({ length: 6 }, (_, index) => thumbprint(`device-${index}`));
    await answersTo(
      nodes.writers,
      devices.map((device) => signed(device, buildRequest())),
    );
    const ends = devices.map((device) => signed(device, buildRequest({ act: 'end', seq: 2 })));
    expect(new Set(await answersTo(nodes.writers, ends))).toEqual(new Set(['ended']));
    expect(await nodes.database.reader.activations.movesSince('KEY-1', 0)).toBe(3);
    expect(await nodes.database.reader.activations.count({ seatAt: Date.now() })).toBe(3);
  });
});
