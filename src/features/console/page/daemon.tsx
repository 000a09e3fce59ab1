import { createContext, type ComponentChildren } from 'preact';
import { useContext, useEffect } from 'preact/hooks';
import type { ProductObject } from '../../../wire/catalogue.ts';
import type { TokenObject } from '../../../wire/access.ts';
import type { OverviewObject } from '../wire/console.ts';
import { CommandOptions } from './parts/command.tsx';
import { useSession } from './session.ts';
import { useData } from './use-data.ts';

export type Daemon = {
  readonly role: OverviewObject['role'];
  /** It does not answer. */
  readonly isAway: boolean;
  /** Of all amounts, such as `EUR`. Null: not known. */
  readonly currency: string | null;
  /** The products of an authority; at most 100. Null: not read yet, or this is no authority. */
  readonly products: readonly ProductObject[] | null;
  /** By product key. */
  readonly productNames: ReadonlyMap<string, string>;
  /** By the id of the token. */
  readonly tokenLabels: ReadonlyMap<string, string>;
};

const DaemonContext = createContext<Daemon | null>(null);

/** What all pages know about the daemon. It is read again on each page. */
export function DaemonProvider({
  overview: { role, products: named, options, currency },
  isAway,
  address,
  children,
}: {
  overview: Pick<OverviewObject, 'role' | 'products' | 'options' | 'currency'>;
  isAway: boolean;
  /** The address of the page. */
  address: string;
  children: ComponentChildren;
}) {
  const read = useData<{ products: ProductObject[] }>(
    role === 'authority' ? '/admin/v1/products?limit=100' : null,
  );
  const tokens = useData<{ tokens: TokenObject[] }>('/admin/v1/tokens?limit=100');
  useEffect(() => {
    read.reload();
    tokens.reload();
  }, [address]);
  const products = read.data?.products ?? null;
  const productNames = new Map((products ?? named ?? []).map(({ product_key: key, name }) => [key, name]));
  const labels = (tokens.data?.tokens ?? []).map(({ token_id: id, label }) => [id, label ?? id] as const);
  const daemon = { role, isAway, currency, products, productNames, tokenLabels: new Map(labels) };
  return (
    <DaemonContext.Provider value={daemon}>
      <CommandOptions.Provider value={options}>{children}</CommandOptions.Provider>
    </DaemonContext.Provider>
  );
}

export function useDaemon(): Daemon {
  const daemon = useContext(DaemonContext);
  if (daemon === null) throw new Error('there is no page around');
  return daemon;
}

/** Whether this page can change something now. */
export function useCanAct(): boolean {
  const session = useSession();
  const { isAway } = useDaemon();
  return session?.admin === true && !isAway;
}

export function ProductName({ of: key }: { of: string }) {
  return <>{useDaemon().productNames.get(key) ?? key}</>;
}

/** A credential in words: `token Support desk`, `software of Inkwell`. */
export function Who({ is: credential }: { is: string }) {
  const { productNames, tokenLabels } = useDaemon();
  const [kind = '', id = ''] = split(credential);
  if (kind === 'token' && id === 'admin.token') return <>the admin token of this machine</>;
  if (kind === 'token') return <>the token {tokenLabels.get(id) ?? id}</>;
  if (kind === 'product') return <>software with the secret of {productNames.get(id) ?? id}</>;
  if (kind === 'account') return <>software with the API key of {id}</>;
  if (kind === 'console') return <>a person in the console ({id})</>;
  return <>{credential === 'latchkey' ? 'Latchkey itself' : credential}</>;
}

function split(credential: string): string[] {
  const at = credential.indexOf(':');
  return at === -1 ? [credential] : [credential.slice(0, at), credential.slice(at + 1)];
}
