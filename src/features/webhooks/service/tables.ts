import type { Page } from '../../../domain/page.ts';
import type { EventType, NewEvent } from '../../../domain/event.ts';
import type { WebhookDelivery, WebhookEndpoint, WebhookEvent } from '../domain/webhook.ts';

/** The endpoints of webhooks, the events for them, and what became of the events. */
export interface WebhookReads {
  /** Whether there is an endpoint. */
  isUsed(): boolean;
  get(endpointId: string): WebhookEndpoint | null;
  /** All endpoints, oldest first. */
  all(): WebhookEndpoint[];
  /**
   * The ids of the endpoints that may be claimed now and whose position is below the number of the last event. `isAlone`:
   * claims do not count, because no other process uses the store.
   */
  due(now: number, isAlone: boolean): string[];
  event(eventId: string): WebhookEvent | null;
  /** The first event after a position, of some types (null: of any type). */
  next(position: number, types: readonly EventType[] | null): WebhookEvent | null;
  /** How many events follow a position; counts up to `limit`. */
  waiting(position: number, types: readonly EventType[] | null, limit: number): number;
  /** At least the number of every event and every position; 0: there is none. */
  lastNumber(): number;
  delivery(endpointId: string, number: number): WebhookDelivery | null;
  /** Latest event first. */
  deliveries(endpointId: string, page: Page): WebhookDelivery[];
  deliveryCount(endpointId: string): number;
}

export interface WebhookTable extends WebhookReads {
  /** Locks an endpoint until the end of the transaction, and returns it. */
  lock(endpointId: string): WebhookEndpoint | null;
  put(endpoint: WebhookEndpoint): void;
  /** Also removes its deliveries. */
  remove(endpointId: string): void;
  /** Adds an event with the next number, unless there is no endpoint. */
  addEvent(event: NewEvent & { eventId: string; at: number }): void;
  putDelivery(delivery: WebhookDelivery): void;
  /** Removes up to `limit` events from before an instant, and their deliveries; returns how many events. */
  prune(before: number, limit: number): number;
}

declare module '../../../service/tables.ts' {
  interface Reader {
    webhooks: WebhookReads;
  }
  interface Transaction {
    webhooks: WebhookTable;
  }
}
