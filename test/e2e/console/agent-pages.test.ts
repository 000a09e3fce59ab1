import { beforeAll, expect, test } from 'vitest';
import {
  eventually,
  startHarness,
  type Agent,
  type AgentHarness,
} from '../../support/harness/agent-harness.ts';
import {
  every,
  firstFew,
  loseResponse,
  movesCounter,
  refusal,
} from '../../support/harness/plain-upstream.ts';
import { describeInBrowser, OpenConsole } from '../../support/process/console-daemon.ts';
import { ConsolePage } from '../../support/process/console-page.ts';

const markup = '<img src=x onerror=document.title=1>';
const held = 'HELD-5H2K-9Q3W';
const readKey = 'READ-5H2K-9Q3W-7XYZ';
const refused = ['DROPPED', 'RETRIED', 'BULK', 'BULK', readKey, 'KEPT', markup];
const redButtons = `document.querySelectorAll('button[data-dangerous="true"]').length`;
const searchLabel = 'Part of a license key, a coupon code, an order or an e-mail address';
const keys = [held, 'MANY', ...new Set(refused)];

describeInBrowser('the console of an agent', (opened) => {
  let harness: AgentHarness;
  let agent: Agent;
  let shown: OpenConsole;
  let page: ConsolePage;

  beforeAll(async () => {
    const sync = { writers: 'many', on_uncertain: 'hold' };
    harness = opened.use(await startHarness({ licenses: keys, configuration: { sync } }));
    agent = await harness.startAgent();
    await agent.learn(keys);
    harness.upstream.fault = firstFew(1, loseResponse, movesCounter);
    await agent.change('usage', held);
    await eventually(async () => (await agent.status()).outbox.held === 1);
    harness.upstream.fault = every(refusal(422, `Closed ${markup}`), movesCounter);
    for (const key of refused) await agent.change('usage', key);
    await eventually(async () => (await agent.status()).outbox.dead === refused.length);
    shown = opened.use(await OpenConsole.of(agent));
    ({ page } = shown);
  });

  async function statesOf(key: string): Promise<string[]> {
    const states = ['dead', 'dropped', 'delivered', 'uncertain'];
    const lists = await Promise.all(states.map((state) => agent.operations(state)));
    return lists
      .flat()
      .filter(({ license_key: subject }) => subject === key)
      .map(({ state }) => state);
  }

  test('what needs a person has the same layout in one list, and its actions are below its text', async () => {
    await page.open('', 'Overview');
    await page.settled();
    for (const width of [1200, 900, 400]) {
      await page.page.setViewportSize({ width, height: 900 });
      const layouts = await page.page.evaluate<{ isBelow: boolean; shift: number }[]>(
        `[...document.querySelectorAll('.attention li')].map((item) => {
          const [text, ways] = ['.attention-text', '.attention-ways'].map((part) => item.querySelector(part).getBoundingClientRect());
          return { isBelow: ways.top >= text.bottom, shift: ways.left - text.left };
        })`,
      );
      expect(layouts).toHaveLength(2);
      expect(new Set(layouts.map((each) => JSON.stringify(each)))).toEqual(
        new Set(['{"isBelow":true,"shift":0}']),
      );
    }
    await page.page.setViewportSize({ width: 1280, height: 720 });
  });

  test('the menu leads to each page by keyboard alone, and axe-core finds nothing serious in any', async () => {
    await page.open('', 'Overview');
    for (const [link, title] of [
      [/^Outbox \d+$/, 'Outbox'],
      ['Doctor', 'Doctor'],
      ['Audit', 'Audit'],
      ['Settings', 'Settings'],
      ['Overview', 'Overview'],
    ] as const) {
      await page.press(link);
      await page.headed(title);
      await page.settled();
      expect(await page.focused()).toBe(title);
      expect(await page.seriousProblems(), title).toEqual([]);
    }
    expect(page.errors).toEqual([]);
  });

  test('the overview shows first what needs a person, with the page and the command for it', async () => {
    await page.open('', 'Overview');
    await page.shows('latchkey outbox list --state dead');
    const text = await page.text();
    expect(text.indexOf('things need you')).toBeLessThan(text.indexOf('Upstream'));
    await page.press('Look at it');
    await page.headed('Outbox');
    expect(await page.page.evaluate<string>('location.hash')).toMatch(/^#\/outbox\?state=/);
  });

  test('a person pauses and resumes sending by keyboard alone', async () => {
    await page.open('', 'Overview');
    await page.press('Pause');
    await page.shows('latchkey sync pause');
    expect(await page.seriousProblems()).toEqual([]);
    await page.press('Pause');
    await page.shows('Sync has been paused since');
    expect((await agent.status()).upstream.state).toBe('paused');
    await page.press('Resume');
    await page.shows('latchkey sync resume');
    await page.press('Resume');
    await eventually(async () => (await agent.status()).upstream.state !== 'paused');
  });

  test('a person drops a refused change by keyboard alone, and the audit log says who did it', async () => {
    await page.open('outbox?state=dead', 'Outbox');
    await page.press('Drop: One use of DROPPED');
    await page.shows('the store never counts this use');
    await page.shows('latchkey outbox drop ');
    await page.press('Drop');
    await page.shows('One use of DROPPED: given up.');
    expect(await page.focused()).toBe('One use of DROPPED: given up.');
    expect(await statesOf('DROPPED')).toEqual(['dropped']);
    await page.open('audit?act=outbox.drop', 'Audit');
    await page.shows('a person in the console (');
  });

  test('an uncertain change shows the count before it, the count after it, and the count in the store', async () => {
    await page.open('outbox?state=uncertain', 'Outbox');
    await page.press(`One use of ${held}`);
    await page.headed(`One use of ${held}`);
    await page.shows('If it alone was applied\n1 use');
    const text = await page.text();
    expect(text).toContain('Before the change\n0 uses');
    expect(text).toMatch(/The store showed .*\n1 use, enabled/);
    expect(await page.seriousProblems()).toEqual([]);
    await page.press(`Confirm: One use of ${held}`);
    await page.shows('Was this change applied at the upstream?');
    await page.press('Confirm');
    await page.shows('Done: the store applied it');
    expect(await statesOf(held)).toEqual(['delivered']);
  });

  test('a decision about a whole filter leaves the other changes as they are', async () => {
    await page.open('outbox?state=dead&key=BULK', 'Outbox');
    await page.press('Drop all');
    await page.shows('This is about 2 changes');
    await page.shows('latchkey outbox decide drop --state dead --key BULK');
    await page.press('Drop all');
    await page.shows('2 changes decided.');
    await page.press('Close');
    await page.shows('No change fits this filter.');
    expect(await statesOf('BULK')).toEqual(['dropped', 'dropped']);
    expect(await statesOf('KEPT')).toEqual(['dead']);
  });

  test('a list is shown page by page, and a decision about a filter reaches all pages', async () => {
    await agent.ask('/admin/v1/sync/pause', 'post');
    for (let each = 0; each < 120; each += 1) await agent.change('usage', 'MANY');
    await page.open('outbox?key=MANY', 'Outbox');
    await page.shows('25 of 120');
    await page.press('Show more');
    await page.shows('50 of 120');
    await page.press('Drop all');
    await page.shows('This is about 120 changes');
    await page.press('Drop all');
    await page.shows('120 changes decided.');
    await page.press('Close');
    await page.shows('No change fits this filter.');
    expect((await agent.status()).outbox.pending).toBe(0);
    await agent.ask('/admin/v1/sync/resume', 'post');
  });

  test('a change that the outbox sends meanwhile leaves the open list by itself', async () => {
    await page.open('outbox?state=dead', 'Outbox');
    await page.shows('One use of RETRIED');
    harness.upstream.fault = () => undefined;
    const operation = (await agent.operations('dead')).find(({ license_key: key }) => key === 'RETRIED');
    await agent.ask(`/admin/v1/outbox/${operation?.id ?? ''}/retry`, 'post');
    await expect.poll(() => page.text()).not.toContain('One use of RETRIED');
    await page.shows('One use of KEPT');
    await eventually(async () => (await statesOf('RETRIED')).includes('delivered'));
  });

  test('the filters of the pages are in the address and survive a reload', async () => {
    await page.open('outbox', 'Outbox');
    await page.press(/^dead \d+$/);
    await page.fill(searchLabel, 'ept');
    await page.shows('1 of 1');
    await page.page.reload();
    await page.shows('1 of 1');
    expect(await page.text()).toContain('latchkey outbox list --state dead --search ept');

    await page.open('audit?act=outbox.drop', 'Audit');
    await page.fill('Subject', 'nothing');
    await page.page.keyboard.press('Enter');
    await page.shows('Nothing fits this filter.');
    await page.page.reload();
    await page.shows('Nothing fits this filter.');
    expect(await page.text()).toContain('latchkey audit list --act outbox.drop --subject nothing');
    expect(page.errors).toEqual([]);
  });

  test('the filter of the settings is in the address and survives a reload', async () => {
    await page.open('settings', 'Settings');
    await page.fill('Contains', 'on_uncertain');
    await page.page.keyboard.press('Enter');
    await page.shows('1 setting');
    await page.page.reload();
    await page.shows('1 setting');
    expect(await page.text()).toMatch(/sync\.on_uncertain\s+hold\s+file/);
  });

  test('on a screen of 320 pixels the menu opens by keyboard, and no page scrolls sideways', async () => {
    await page.page.setViewportSize({ width: 320, height: 640 });
    for (const [hash, title] of [
      ['', 'Overview'],
      ['outbox', 'Outbox'],
      ['doctor', 'Doctor'],
      ['audit', 'Audit'],
      ['settings', 'Settings'],
    ] as const) {
      await page.open(hash, title);
      await page.settled();
      const wide = `[...document.querySelectorAll('html, main, .table')]
        .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
        .map(({ outerHTML }) => outerHTML.slice(0, 100))`;
      expect(await page.page.evaluate(wide), title).toEqual([]);
    }
    await page.press('Menu');
    await page.press('Doctor');
    await page.headed('Doctor');
    expect(await page.seriousProblems()).toEqual([]);
    await page.page.setViewportSize({ width: 1280, height: 800 });
  });

  test('a person examines the daemon again and reloads its settings by keyboard alone', async () => {
    await page.open('doctor', 'Doctor');
    await page.settled();
    await page.press('Examine again');
    await page.settled();
    await page.shows('In order');
    await page.open('settings', 'Settings');
    await page.press('Reload');
    await page.shows('latchkey reload');
    await page.press('Reload');
    await page.shows('Nothing changed.');
    await page.press('Close');
    expect(page.errors).toEqual([]);
  });

  test('each command in the advice of the doctor has a button that copies it', async () => {
    await page.open('doctor', 'Doctor');
    await page.settled();
    const commands = await page.page.evaluate<string[]>(
      `[...document.querySelectorAll('.findings li')].map(({ innerText }) => innerText)
        .filter((text) => text.includes('latchkey outbox'))`,
    );
    expect(commands).not.toEqual([]);
    for (const text of commands) expect(text).toMatch(/^latchkey outbox list --state .*\n+Copy$/m);
  });

  test('markup in a license key and in an error of the upstream is shown as text', async () => {
    await page.open('outbox?state=dead', 'Outbox');
    await page.shows(`HTTP 422: Closed ${markup}`);
    await page.press(`One use of ${markup}`);
    await page.headed(`One use of ${markup}`);
    expect(await page.page.evaluate('document.querySelector("img")')).toBeNull();
    expect(await page.page.evaluate('document.title')).toBe(`One use of ${markup} – Latchkey`);
    expect(page.errors).toEqual([]);
  });

  test('a session that only reads shows the command of an action but cannot act, and sees no whole license key', async () => {
    const reader = await shown.newPage();
    await reader.signIn({ admin: false });
    await reader.open('outbox?state=dead', 'Outbox');
    await reader.shows('One use of …7XYZ');
    expect(await reader.text()).not.toContain('~');
    expect(await reader.page.evaluate(redButtons)).toBe(0);
    await reader.press('Drop: One use of …7XYZ');
    await reader.shows('latchkey outbox drop ');
    await reader.shows('This session can only look.');
    expect(await reader.page.evaluate('document.querySelector("dialog [type=submit]")')).toBeNull();
    await reader.press('Close');
    await reader.press('One use of …7XYZ');
    await reader.headed('One use of …7XYZ');
    const text = await reader.text();
    expect([text.includes('~'), text.includes(readKey)]).toEqual([false, false]);
    const code = await reader.page.evaluate<string>(`(async () => {
      const { token } = JSON.parse(sessionStorage.getItem('latchkey-session'));
      const id = location.hash.split('/').at(-1);
      const headers = { Authorization: 'Bearer ' + token };
      const answer = await fetch('/admin/v1/outbox/' + id + '/drop', { method: 'POST', headers });
      return (await answer.json()).code;
    })()`);
    expect([code, await statesOf(readKey)]).toEqual(['session_read_only', ['dead']]);
    expect(reader.errors).toEqual([]);
  });

  test('a page that is open while the daemon is stopped and started says why it needs another code, and goes on where it was', async () => {
    await page.open('outbox?state=dead', 'Outbox');
    await page.shows('One use of KEPT');
    const { tcp } = agent.process;
    await agent.kill();
    await page.shows('The daemon does not answer. The page shows what it said last');
    expect(await page.text()).toContain('One use of KEPT');
    expect(await page.page.evaluate(redButtons)).toBe(0);
    await page.press('Drop: One use of KEPT');
    await page.shows('Nothing can be changed until it is back.');
    await page.press('Close');
    await page.fill(searchLabel, 'KEP');
    agent = await harness.startAgent({ listen: { tcp: new URL(tcp).host } });
    expect(agent.process.tcp).toBe(tcp);
    await page.shows('The daemon was restarted, and its sessions ended.');
    expect(await page.seriousProblems()).toEqual([]);
    await page.confirm({ admin: true });
    await page.headed('Outbox');
    expect(await page.focused()).toBe(searchLabel);
    await page.page.keyboard.type('T');
    await page.page.keyboard.press('Enter');
    await page.shows('1 of 1');
    await page.shows('One use of KEPT');
    expect(await page.text()).not.toContain('does not answer');
  });

  test('a second tab of the same browser needs no second code, and is signed out with the first', async () => {
    const tab = await page.page.context().newPage();
    const second = new ConsolePage(tab, { tcp: agent.process.tcp, admin: agent.admin });
    await second.open('settings', 'Settings');
    await second.press('Sign out');
    await second.shows('The command asks whether this code is yours:');
    await page.shows('The command asks whether this code is yours:');
    expect(await page.text()).not.toContain('KEPT');
  });
});
