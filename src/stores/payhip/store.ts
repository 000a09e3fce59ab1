import type { Store } from '../store.ts';
import { sent } from './http.ts';
import { received } from './upstream.ts';

/** Payhip speaks the specification in a dialect of its own. */
export const store: Store = { sent, received };
