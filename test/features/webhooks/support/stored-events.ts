import type { AuthorityReader } from '../../../../src/service/tables.ts';

/** The number of the last event that is stored for endpoints. */
export async function lastEvent({ webhooks }: Pick<AuthorityReader, 'webhooks'>): Promise<number> {
  return await webhooks.lastNumber();
}

/** The types and subjects of the events after a number. */
export async function eventsSince(
  { webhooks }: Pick<AuthorityReader, 'webhooks'>,
  number: number,
): Promise<string[]> {
  const found: string[] = [];
  for (let at = number; ;) {
    const event = await webhooks.next(at, null);
    if (event === null) return found;
    found.push(`${event.type} ${event.subject}`);
    at = event.number;
  }
}
