import { partsOfKey } from '../../domain/agent/activated-key.ts';
import { specification } from '../../http/dialects.ts';
import type { Store } from '../store.ts';
import { routes } from './http.ts';
import { LemonSqueezyClient, received } from './upstream.ts';

/** Lemon Squeezy has an API of its own. Under `/api`, an agent of it answers as the specification says. */
export const store: Store = {
  sent: specification,
  received,
  // It counts no uses. A disable of an activation is its deactivation; the seller disables license keys in the dashboard.
  takes: (trigger, licenseKey) => trigger === 'disable' && partsOfKey(licenseKey).activationId !== null,
  connect: (transport, settings, clock) => new LemonSqueezyClient(transport, settings, clock),
  routes,
};
