import { movesWithinMs, type Activation } from '../../domain/lease.ts';
import { failWith, notFound, unknownProduct, type Result } from '../../domain/problem/problem.ts';
import { importEach, type ImportedRow, type ImportReport, type ImportRows } from '../authority/import.ts';
import { storedLicenseKey } from '../services.ts';
import type { Context } from '../ports.ts';
import type { AuthorityTransaction } from '../tables.ts';

/**
 * An activation of another issuer. The answer to its last request is not imported. `digest`: empty if the export is one of an
 * earlier release.
 */
export type ActivationRow = { row: number; activation: Omit<Activation, 'answer'> };

type ActivationImport = ImportRows<ActivationRow> & {
  /** Accept only products of this account; null: any. */
  accountId: string | null;
};

/**
 * Imports activations from another issuer, so that its devices keep their seats. A device whose last request was answered
 * there goes on with the next number. If the answer was lost, the issuer knows the repeated request by its digest: it
 * answers the request, and its uses do not count again. An import can be repeated.
 */
export async function importActivations(
  transaction: AuthorityTransaction,
  command: ActivationImport,
  { now }: Context,
): Promise<Result<ImportReport>> {
  const imported = new Map<string, Activation>();
  return await importEach(command, {
    importOne: (row) => importActivation(transaction, row, { ...command, now, imported }),
    identitiesOf: ({ activation: { activationId, licenseKey, device } }) => [
      `id ${activationId}`,
      `device ${licenseKey} ${device}`,
    ],
  });
}

async function importActivation(
  { activations, licenses, products }: AuthorityTransaction,
  { activation: imported }: ActivationRow,
  {
    accountId,
    isDryRun,
    now,
    imported: written,
  }: ActivationImport & { now: number; imported: Map<string, Activation> },
): Promise<ImportedRow> {
  const { activationId, device, productKey } = imported;
  const licenseKey = await storedLicenseKey({ licenses }, imported.licenseKey);
  const product = await products.get(productKey);
  if (product === null || (accountId !== null && product.accountId !== accountId)) {
    return { code: unknownProduct.code, detail: unknownProduct.detail };
  }
  const license = await licenses.get(licenseKey);
  if (license?.productKey !== productKey) return refusalOf(notFound('license'));
  const stored =
    written.get(`${licenseKey} ${device}`) ??
    written.get(activationId) ??
    (await activations.get(activationId)) ??
    (await activations.ofDevice(licenseKey, device));
  const activation: Activation = {
    ...imported,
    licenseKey,
    // Only the moves that still count.
    movedAt: imported.movedAt.filter((at) => at > now - movesWithinMs).toSorted((one, other) => one - other),
    challengedAt: imported.challengedAt.toSorted((one, other) => one - other).slice(-3),
    answer: { kind: 'refused', problem: notImported },
  };
  if (stored !== null) return isSame(stored, activation) ? 'unchanged' : taken;
  written.set(`${licenseKey} ${device}`, activation).set(activationId, activation);
  if (!isDryRun) await activations.put(activation);
  return 'imported';
}

/** Marks an activation whose last answer is not known here. No recorded answer is this problem. */
const notImported = failWith('out_of_sequence', 'This activation was imported.').problem;

/** Whether the answer to the last request of an activation was given by another issuer, and is not known here. */
export function isAnsweredElsewhere({ answer }: Activation): boolean {
  return answer.kind === 'refused' && answer.problem.code === notImported.code;
}

const taken = {
  code: 'taken',
  detail: 'There already is another activation with this id, or of this license and device.',
};

function refusalOf({ problem: { code, detail } }: ReturnType<typeof failWith>): {
  code: string;
  detail: string;
} {
  return { code, detail };
}

/** Compares what identifies an activation. A device that has gone on since the import is still the same. */
function isSame(stored: Activation, imported: Activation): boolean {
  return (
    stored.activationId === imported.activationId &&
    stored.licenseKey === imported.licenseKey &&
    stored.productKey === imported.productKey &&
    stored.device === imported.device &&
    stored.seq >= imported.seq
  );
}
