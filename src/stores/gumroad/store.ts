import { specification } from '../../http/dialects.ts';
import type { Store } from '../store.ts';
import { routes } from './http.ts';
import { GumroadClient, received } from './upstream.ts';

/** Gumroad has an API of its own. Under `/api`, an agent of it answers as the specification says. */
export const store: Store = {
  sent: specification,
  received,
  connect: (transport, settings, clock) => new GumroadClient(transport, settings, clock),
  routes,
};
