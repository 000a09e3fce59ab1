import type { HeldLease } from '../domain/lease.ts';
import type { HeldLeaseReads, HeldLeaseTable } from '../service/tables.ts';
import { columns, type Sql, type WritingSql } from '../../../store/sql.ts';

type Row = Omit<HeldLease, 'uses' | 'confirmedUses'> & {
  recorded: number;
  returned: number;
  confirmedRecorded: number;
  confirmedReturned: number;
};

const heldLease =
  columns<Row>(`license_key, product_key, activation_id, document JSON, rev, seq, request JSON,
  uses_recorded AS recorded, uses_returned AS returned, confirmed_recorded, confirmed_returned, wanted, created_at`);

function heldLeaseFrom(row: never): HeldLease {
  const { recorded, returned, confirmedRecorded, confirmedReturned, ...same } = heldLease.from(row);
  return {
    ...same,
    uses: { recorded, returned },
    confirmedUses: { recorded: confirmedRecorded, returned: confirmedReturned },
  };
}

export function heldLeaseReads(sql: Sql<'sqlite'>): HeldLeaseReads {
  const select = `SELECT ${heldLease.list} FROM held_lease`;
  return {
    get: sql.get(`${select} WHERE license_key = $1`, heldLeaseFrom),
    all: sql.all(`${select} ORDER BY license_key`, heldLeaseFrom),
    count: sql.count('SELECT count(*) AS count FROM held_lease'),
  };
}

export function heldLeaseTable(sql: WritingSql<'sqlite'>): HeldLeaseTable {
  const put = sql.run(heldLease.upsert('held_lease', ['license_key']));
  return {
    ...heldLeaseReads(sql),
    put({ uses, confirmedUses, ...same }) {
      const { recorded: confirmedRecorded, returned: confirmedReturned } = confirmedUses;
      put(...heldLease.values({ ...same, ...uses, confirmedRecorded, confirmedReturned }));
    },
    remove: sql.run('DELETE FROM held_lease WHERE license_key = $1'),
  };
}
