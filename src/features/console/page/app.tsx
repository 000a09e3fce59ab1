import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import type { OverviewObject } from '../wire/console.ts';
import { send } from './api.ts';
import { DaemonProvider } from './daemon.tsx';
import { count, counted } from './format.ts';
import { Notice } from './parts/notice.tsx';
import { hrefTo, useRoute, type Route } from './router.ts';
import { endSession, useSigned, type Session } from './session.ts';
import { SignIn } from './sign-in.tsx';
import { useData, type Loaded } from './use-data.ts';
import { pages, type PageEntry } from './pages.ts';

export function App() {
  const { session, ended } = useSigned();
  // The page with what was typed stays behind the question for another code.
  const shown = session ?? ended;
  return (
    <>
      {shown !== null && <Console session={shown} />}
      {session === null && <SignIn ended={ended} />}
    </>
  );
}

const overviewEveryMs = 2_000;

function Console({ session }: { session: Session }) {
  const route = useRoute();
  const overview = useData<OverviewObject>('/admin/v1/overview', overviewEveryMs);
  const { data, error } = overview;
  const role = data?.role ?? null;
  const shown = pages.filter((page) => role !== null && page.roles.includes(role));
  const current = shown.find((page) => page.path === (route.path[0] ?? '')) ?? null;
  return (
    <div class="console">
      <a class="skip" href="#content" onClick={skipToContent}>
        Skip to the content
      </a>
      <Header overview={data} session={session}>
        <Navigation pages={shown} current={current} overview={data} />
      </Header>
      <main id="content" tabIndex={-1}>
        {error !== null && error.code !== 'signed_out' && (
          <Notice tone="fail">
            {error.status === 0
              ? 'The daemon does not answer. The page shows what it said last, and tries again.'
              : error.message}
          </Notice>
        )}
        {data !== null && (
          <DaemonProvider overview={data} isAway={error?.status === 0} address={route.path.join('/')}>
            <Content page={current} route={route} overview={overview} />
          </DaemonProvider>
        )}
        {data === null && error === null && <p class="quiet">Reading …</p>}
      </main>
    </div>
  );
}

function skipToContent(event: Event): void {
  event.preventDefault();
  document.getElementById('content')?.focus();
}

function Content({
  page,
  route,
  overview,
}: {
  page: PageEntry | null;
  route: Route;
  overview: Loaded<OverviewObject>;
}) {
  const address = route.path.join('/');
  useLayoutEffect(() => {
    document.querySelector<HTMLElement>('h1')?.focus();
    scrollTo(0, 0);
  }, [address]);
  if (page === null)
    return (
      <>
        <h1 tabIndex={-1}>There is no such page</h1>
        <a href={hrefTo([])}>Overview</a>
      </>
    );
  const { Page } = page;
  return <Page route={route} overview={overview} />;
}

function Header({
  overview,
  session,
  children,
}: {
  overview: OverviewObject | null;
  session: Session;
  children: ComponentChildren;
}) {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const close = (): void => setOpen(false);
    addEventListener('hashchange', close);
    return () => removeEventListener('hashchange', close);
  }, []);
  return (
    <header class="bar" data-open={isOpen}>
      <div class="brand">
        <a href={hrefTo([])}>Latchkey</a>
        {overview !== null && <span class="quiet">{overview.role}</span>}
      </div>
      <button
        type="button"
        class="menu"
        aria-expanded={isOpen}
        aria-controls="menu"
        onClick={() => setOpen(!isOpen)}
      >
        Menu
      </button>
      <div class="menu-content" id="menu">
        {children}
        <div class="session">
          <p class="quiet">
            {session.admin ? 'You can change everything.' : 'You can look, and change nothing.'}
          </p>
          <button type="button" onClick={() => void signOut(session)}>
            Sign out
          </button>
          {overview !== null && <p class="quiet">Version {overview.version}</p>}
        </div>
      </div>
    </header>
  );
}

async function signOut(session: Session): Promise<void> {
  const ending = send('DELETE', '/console/v1/sessions');
  // Before other tabs find that their session is over.
  endSession(session, true);
  // A daemon that does not answer has no session either.
  await ending.catch(() => undefined);
}

function Navigation({
  pages: shown,
  current,
  overview,
}: {
  pages: readonly PageEntry[];
  current: PageEntry | null;
  overview: OverviewObject | null;
}) {
  const groups = [...Map.groupBy(shown, ({ group }) => group)];
  return (
    <nav aria-label="Pages">
      {groups.map(([group, entries]) => (
        <div key={group}>
          {group !== '' && <h2>{group}</h2>}
          <ul>
            {entries.map(({ path, title, needs }) => (
              <li key={path}>
                <a href={hrefTo([path])} aria-current={current?.path === path ? 'page' : undefined}>
                  {title} {overview !== null && <Needs number={needs?.(overview) ?? 0} />}
                </a>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </nav>
  );
}

/** How many things of a page need a person. */
function Needs({ number }: { number: number }) {
  if (number === 0) return null;
  return (
    <span class="needs" title={`${counted(number, 'thing needs', 'things need')} you`}>
      {count(number)}
    </span>
  );
}
