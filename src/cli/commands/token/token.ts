import type { TokenObject } from '../../../wire/token.ts';
import { type Cell, instant, whole } from '../../format.ts';

export const tokensPath = '/admin/v1/tokens';

export function tokenFields(shown: TokenObject): Readonly<Record<string, Cell>> {
  return {
    id: whole(shown.token_id),
    scopes: shown.scopes.join(','),
    product: shown.product_key,
    account: shown.account_id,
    label: shown.label,
    created: instant(shown.created_at),
    'last used': instant(shown.last_used_at),
    expires: instant(shown.expires_at),
  };
}
