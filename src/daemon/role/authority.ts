import { authorityCouponing, authorityLicensing } from '../../service/authority/answers.ts';
import { authorityCheckout } from '../../service/authority/checkout.ts';
import { authorityCredentials } from '../../service/access/credential.ts';
import type { Lists } from '../../service/lists.ts';
import type { AuthorityReader } from '../../service/tables.ts';
import type { Role, RoleParts } from './role.ts';

/** Builds an authority: it answers from its own store, and has no upstream. */
export function authorityRole({
  reader,
  lists,
  writer,
  clock,
  tokenUses: uses,
}: RoleParts & { reader: AuthorityReader; lists: Lists }): Role {
  return {
    licensing: authorityLicensing(reader, writer),
    couponing: authorityCouponing(reader, writer, lists),
    checkout: authorityCheckout(reader, writer, clock),
    credentials: authorityCredentials({
      reader,
      verifiedNow: () => clock.verified(),
      uses,
    }),
    productName: async (productKey) => (await reader.products.get(productKey))?.name ?? null,
    upstream: null,
    sync: null,
    bind: () => Promise.resolve(),
    run: (signal) => untilAborted(signal),
  };
}

async function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise((resolve) => {
    signal.addEventListener('abort', resolve, { once: true });
  });
}
