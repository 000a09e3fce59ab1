import type { HeldLease } from '../../../domain/lease.ts';
import type { HeldLeaseReads, HeldLeaseTable } from '../../../service/lease/tables.ts';
import type { Prepare } from '../statements.ts';

const select = `SELECT license_key AS licenseKey, product_key AS productKey, activation_id AS activationId,
  document, rev, seq, request, uses_recorded AS recorded, uses_returned AS returned,
  confirmed_recorded AS confirmedRecorded, confirmed_returned AS confirmedReturned, wanted, created_at AS createdAt
  FROM held_lease`;

type Row = Pick<
  HeldLease,
  'licenseKey' | 'productKey' | 'activationId' | 'rev' | 'seq' | 'wanted' | 'createdAt'
> & {
  document: string | null;
  request: string | null;
  recorded: number;
  returned: number;
  confirmedRecorded: number;
  confirmedReturned: number;
};

function fromRow(row: Row): HeldLease {
  const { licenseKey, productKey, activationId, document, rev, seq, request, wanted, createdAt } = row;
  return {
    licenseKey,
    productKey,
    activationId,
    document: document === null ? null : (JSON.parse(document) as HeldLease['document']),
    rev,
    seq,
    request: request === null ? null : (JSON.parse(request) as HeldLease['request']),
    uses: { recorded: row.recorded, returned: row.returned },
    confirmedUses: { recorded: row.confirmedRecorded, returned: row.confirmedReturned },
    wanted,
    createdAt,
  };
}

export function heldLeaseReads(prepare: Prepare): HeldLeaseReads {
  const count = prepare.count('SELECT count(*) AS count FROM held_lease');
  return {
    get: prepare.query(`${select} WHERE license_key = ?`, fromRow).first,
    all: prepare.query(`${select} ORDER BY license_key`, fromRow).all,
    count: () => count(),
  };
}

export function heldLeaseTable(prepare: Prepare): HeldLeaseTable {
  const put = prepare.change(`INSERT OR REPLACE INTO held_lease (license_key, product_key, activation_id,
       document, rev, seq, request, uses_recorded, uses_returned, confirmed_recorded,
       confirmed_returned, wanted, created_at)
     VALUES (:licenseKey, :productKey, :activationId, :document, :rev, :seq, :request, :recorded,
       :returned, :confirmedRecorded, :confirmedReturned, :wanted, :createdAt)`);
  const remove = prepare.change('DELETE FROM held_lease WHERE license_key = :licenseKey');
  return {
    ...heldLeaseReads(prepare),
    put: ({ document, request, uses, confirmedUses, ...same }) => {
      put({
        ...same,
        ...uses,
        document: document === null ? null : JSON.stringify(document),
        request: request === null ? null : JSON.stringify(request),
        confirmedRecorded: confirmedUses.recorded,
        confirmedReturned: confirmedUses.returned,
      });
    },
    remove: (licenseKey) => void remove({ licenseKey }),
  };
}
