import { done, type Result } from '../../../domain/problem/problem.ts';
import type { AuthorityTransaction } from '../../../service/tables.ts';
import type { FoundResponse } from './tables.ts';

/** How much of a person was found and removed. */
export type Forgotten = { licenses: number; devices: number };

/** `accountId`: only licenses of this account; null: all licenses. */
type ForgetCustomer = { buyerEmail: string; accountId: string | null };

/**
 * Removes the e-mail address of a buyer, and the names of the devices of the licenses. The licenses stay, with their keys,
 * counts and seats. Also removes both from stored responses: a repeated request is answered without them.
 */
export async function forgetCustomer(
  { customers, activations, idempotency, events }: AuthorityTransaction,
  { buyerEmail, accountId }: ForgetCustomer,
): Promise<Result<Forgotten>> {
  const folded = folding(buyerEmail);
  const found = await customers.licensesOf(folded, accountId);
  const licenseKeys = found.map(({ licenseKey }) => licenseKey);
  for (const spelled of new Set(found.map((license) => license.buyerEmail)))
    await activations.removeEmail(licenseKeys, spelled);
  const devices = await activations.removeNames(licenseKeys);
  if (licenseKeys.length > 0) await customers.setBuyer(licenseKeys, '');
  // Of another account, the person may still be a buyer.
  const texts = new Set([...licenseKeys, ...devices, ...(accountId === null ? [folded] : [])].map(folding));
  // A buyer whose license was transferred has none, and may be in responses.
  let responses = 0;
  for await (const { credential, key, ...stored } of allResponses(customers)) {
    if (!hasText(stored.value, texts)) continue;
    await idempotency.replace(credential, key, { ...stored, value: withoutPerson(stored.value, folded) });
    responses += 1;
  }
  for (const licenseKey of licenseKeys) events.add({ type: 'license.forgotten', subject: licenseKey });
  const forgotten = done({ licenses: licenseKeys.length, devices: devices.length });
  return licenseKeys.length + responses === 0 ? { ...forgotten, unchanged: true } : forgotten;
}

/** How many responses are in memory. */
const pageLength = 500;

async function* allResponses({
  responsesAfter,
}: AuthorityTransaction['customers']): AsyncGenerator<FoundResponse> {
  let [credential, key] = ['', ''];
  for (;;) {
    const page = await responsesAfter(credential, key, pageLength);
    yield* page;
    const last = page.at(-1);
    if (last === undefined) return;
    ({ credential, key } = last);
  }
}

/** Whether a stored response has one of some texts, which are in lower-case letters. */
function hasText(value: unknown, texts: ReadonlySet<string>): boolean {
  if (typeof value === 'string') return texts.has(folding(value));
  return (
    typeof value === 'object' && value !== null && Object.values(value).some((each) => hasText(each, texts))
  );
}

/** The letters of ASCII in lower case, as the stores compare addresses. */
function folding(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}

const deviceNames: ReadonlySet<string> = new Set(['deviceName', 'device_name']);

/** A stored response without the address of a person, and without names of devices. */
function withoutPerson(value: unknown, folded: string): unknown {
  if (typeof value === 'string') return folding(value) === folded ? '' : value;
  if (Array.isArray(value)) return value.map((item) => withoutPerson(item, folded));
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [
    name,
    deviceNames.has(name) ? null : withoutPerson(member, folded),
  ]);
  return Object.fromEntries(members) as object;
}
