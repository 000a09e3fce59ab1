/** What other systems can get to know, in the order in which it is documented. */
export const eventTypes = [
  'license.issued',
  'license.disabled',
  'license.enabled',
  'license.renewed',
  'license.expiring',
  'license.expired',
  'license.recovery_requested',
  'license.rekeyed',
  'license.transferred',
  'license.forgotten',
  'purchase.refunded',
  'seat.taken',
  'seat.ended',
  'lease.expiring',
  'outbox.needs_review',
  'upstream.down',
  'upstream.up',
] as const;

export type EventType = (typeof eventTypes)[number];

/** An event of a transaction. The subject is a license key, a list of them in JSON or an id; null: the event has none. */
export type NewEvent = { type: EventType; subject: string | null };

/** The events of a transaction. They are stored at its end, so that a refused use case stores none. */
export interface NewEvents {
  add(event: NewEvent): void;
  /** The events since the last call. */
  take(): readonly NewEvent[];
}

/** The event when a license is enabled or disabled; null: nothing changed. */
export function enabledEvent(licenseKey: string, before: boolean, after: boolean): NewEvent | null {
  if (before === after) return null;
  return { type: after ? 'license.enabled' : 'license.disabled', subject: licenseKey };
}
