import { isDeepStrictEqual } from 'node:util';
import type { ReceivedDocument } from '../domain/held-lease.ts';
import type { HeldDocument, HeldLease } from '../domain/lease.ts';
import { done, type Result } from '../../../domain/problem/problem.ts';
import { heldStatement, type HeldCorrection } from '../service/held-lease.ts';
import type { Reader } from '../../../service/tables.ts';
import type { KeyStatement, PublicJwk } from '../wire/lease.ts';
import { readStatement } from '../documents.ts';
import { readDocument, invalid } from './device-documents.ts';

/** What the stored documents of a holder prove. */
export type ExaminedStore = {
  /** Why the stored key statement does not count; null: it counts, or there is none. */
  statementFault: string | null;
  corrections: readonly HeldCorrection[];
};

/**
 * Checks the stored documents against the root keys. The stored values of a document are for this process; programs get the
 * document itself and check its signatures. So where both differ, the values of the document count. A document that proves
 * nothing becomes `unproven`. `device`: the thumbprint of the key of this device.
 */
export async function examineStored(
  reader: Pick<Reader, 'heldLeases' | 'settings'>,
  { roots, device }: { roots: readonly PublicJwk[]; device: string },
): Promise<ExaminedStore> {
  const stored = heldStatement(reader);
  const statement = stored === null ? null : await readStatement(stored.text, roots);
  const corrections: HeldCorrection[] = [];
  for (const held of reader.heldLeases.all()) {
    const { document, licenseKey } = held;
    if (document === null || isOver(document)) continue;
    const proven = await prove(held, document, { statement, device });
    const corrected = proven.ok
      ? { ...proven.value, document: withStoredLicense(proven.value.document, document) }
      : { document: unproven(document, proven.problem.detail), rev: 0 };
    const { document: proper, rev } = corrected;
    if (rev !== held.rev || !isDeepStrictEqual(proper, document))
      corrections.push({ licenseKey, text: document.text, document: proper, rev });
  }
  return { statementFault: statementFault(stored, statement), corrections };
}

/** After such a notice, a seat is only taken again, which the issuer decides. */
function isOver(document: HeldDocument): boolean {
  return document.kind === 'notice' && (document.state === 'ended' || document.state === 'replaced');
}

function statementFault(
  stored: ReturnType<typeof heldStatement>,
  read: Result<KeyStatement> | null,
): string | null {
  if (stored === null || read === null) return null;
  if (!read.ok) return read.problem.detail;
  // 0: other root keys were configured meanwhile.
  const isSame = stored.version === read.value.version || stored.version === 0;
  return isSame ? null : 'The stored version is not that of the key statement.';
}

async function prove(
  { activationId, productKey }: HeldLease,
  { kind, text }: HeldDocument,
  { statement, device }: { statement: Result<KeyStatement> | null; device: string },
): Promise<Result<ReceivedDocument>> {
  if (statement === null) return invalid('There is no key statement.');
  if (!statement.ok) return statement;
  const [asLease, asNotice] = [{ lease: text }, { notice: text }];
  let read = await readDocument(kind === 'notice' ? asNotice : asLease, statement.value, device);
  if (!read.ok) {
    // The stored kind may be what was changed.
    const other = await readDocument(kind === 'notice' ? asLease : asNotice, statement.value, device);
    if (!other.ok) return read;
    read = other;
  }
  const { received, productKey: signedProduct } = read.value;
  if (received.activationId !== activationId) return invalid('It is about another activation.');
  if (signedProduct !== null && signedProduct !== productKey) return invalid('It is about another product.');
  return done(received);
}

function unproven(document: HeldDocument, fault: string): HeldDocument {
  const { text, issuedAt } = document;
  return { kind: 'unproven', text, issuedAt, license: null, fault };
}

/** Two things are not in the document: the uses that were confirmed later, and the license of a notice. */
function withStoredLicense(signed: ReceivedDocument['document'], { license }: HeldDocument): HeldDocument {
  if (license === null) return signed;
  if (signed.kind === 'notice') return { ...signed, license };
  return { ...signed, license: { ...signed.license, uses: license.uses } };
}
