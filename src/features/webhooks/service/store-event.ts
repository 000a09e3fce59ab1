import type { StoreEventStatus } from '../../../service/status.ts';

/** An event of a store, as it was received. */
export type ReceivedEvent = {
  /** The name of the sender in the configuration. */
  name: string;
  body: Buffer;
  /** With names in lower case. */
  headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The parameter `secret` of the query. */
  secret: string | null;
};

/**
 * What became of an event. `accepted`: license keys are read. `nothing_known`: no license key of the event is known here.
 * `too_many`: too many reads wait.
 */
export const eventResults = [
  'accepted',
  'nothing_known',
  'too_many',
  'wrong_signature',
  'not_understood',
  'unknown_name',
] as const;

export type EventResult = (typeof eventResults)[number];

/** Receives events of stores. An event changes nothing by itself: it only makes the agent read license keys earlier. */
export interface StoreEvents {
  receive(event: ReceivedEvent): Promise<EventResult>;
  status(): StoreEventStatus;
}
