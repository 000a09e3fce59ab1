import { specification } from '../../http/dialects.ts';
import { partsOfKey } from '../../domain/agent/activated-key.ts';
import type { Store } from '../store.ts';
import { routes } from './http.ts';
import { PolarClient, received } from './upstream.ts';

/** Polar has an API of its own. Under `/api`, an agent of it answers as the specification says. */
export const store: Store = {
  sent: specification,
  received,
  connect: (transport, settings, clock) => new PolarClient(transport, settings, clock),
  // Uses are counted at a key; an activation is given back as a disable of its stored key.
  takes: (trigger, licenseKey) =>
    trigger === (partsOfKey(licenseKey).activationId === null ? 'usage' : 'disable'),
  routes,
};
