import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runUseCase } from '../../../../src/service/run.ts';
import type { Database } from '../../../../src/features/postgres/store/database.ts';
import type { PostgresWriter } from '../../../../src/features/postgres/store/writer.ts';
import { account, at, buildLicense } from '../../../support/builders/store-builders.ts';
import { hasPostgres, startPostgres, type PostgresServer } from '../support/postgres.ts';
import { openNodes, writerOn } from '../support/postgres-writer.ts';

const day = 86_400_000;
const expiresAt = Date.UTC(2030, 0, 1);
const tenant = { accountId: account.accountId, productKey: null };
const sold = { productKey: 'press', buyerEmail: 'a@example.com' };

/** The writes that store a grace, and the license that has it then. */
const writes: Record<string, { licenseKey: string; write: (writer: PostgresWriter) => Promise<unknown> }> = {
  sold: {
    licenseKey: 'NEW',
    write: (writer) =>
      writer.write('addPurchase', {
        ...sold,
        licenseKey: 'NEW',
        soldAt: null,
        uses: 0,
        enabled: true,
        terms: { expiresAt },
      }),
  },
  imported: {
    licenseKey: 'NEW',
    write: (writer) =>
      writer.write('importLicenses', {
        rows: [
          {
            ...sold,
            row: 1,
            licenseKey: 'NEW',
            uses: null,
            enabled: null,
            createdAt: null,
            replacedBy: null,
            terms: { expiresAt },
          },
        ],
        rejected: [],
        isAtomic: false,
        isDryRun: false,
        accountId: null,
      }),
  },
  changed: {
    licenseKey: 'ENDING',
    write: (writer) => writer.write('updateLicense', { tenant, licenseKey: 'ENDING', change: { expiresAt } }),
  },
  renewed: {
    licenseKey: 'ENDING',
    write: (writer) => writer.write('renewLicense', { tenant, licenseKey: 'ENDING', span: '1y' }),
  },
  'given another key': {
    licenseKey: 'NEW',
    write: (writer) => writer.write('rekeyLicense', { tenant, licenseKey: 'ENDING', newKey: 'NEW' }),
  },
};

describe.skipIf(!hasPostgres)('on PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
  });

  /** Whether a transaction waits for a lock of another. */
  async function isWaiting(database: Database): Promise<boolean> {
    const rows = await database.query('SELECT 1 FROM pg_locks WHERE NOT granted');
    return rows.length > 0;
  }

  test.each(Object.entries(writes))(
    'a license that is %s while its product gets another grace has this grace',
    async (_, { licenseKey, write }) => {
      await using nodes = await openNodes(server, 2);
      const [one, other] = nodes as Database[] as [Database, Database];
      await one.lend(async ({ transaction }) => {
        await transaction.licenses.add(buildLicense({ licenseKey: 'ENDING', expiresAt: at + 30 * day }));
      });
      const isWritten = Promise.withResolvers<void>();
      const mayCommit = Promise.withResolvers<void>();
      const written = write(
        writerOn(one, {
          run: async (...args) => {
            const result = await runUseCase(...args);
            isWritten.resolve();
            await mayCommit.promise;
            return result;
          },
        }),
      );
      await isWritten.promise;
      const isChanged = new AbortController();
      const changed = writerOn(other)
        .write('updateProduct', {
          productKey: 'press',
          name: 'Press',
          recurring: false,
          archived: false,
          licenseTerms: { expiryGraceMs: 7 * day },
        })
        .finally(() => isChanged.abort());
      while (!isChanged.signal.aborted && !(await isWaiting(one)));
      mayCommit.resolve();
      expect(await written).toMatchObject({ ok: true });
      await changed;
      const license = await one.reader.licenses.get(licenseKey);
      expect(license).toMatchObject({ graceUntil: (license?.expiresAt ?? 0) + 7 * day });
    },
  );
});
