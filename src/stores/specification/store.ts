import { specification as sent } from '../../http/dialects.ts';
import { specification as received } from '../../upstream/dialects.ts';
import type { Store } from '../store.ts';

/** A server that implements the specification. The other stores build on this one. */
export const store: Store = { sent, received };
