// Hand-overs of what programs lead and hold.

import { close, has, open, settled } from '../browser.js';
import { elect } from '../fill.js';
import { expect, until } from '../until.js';

const group = (api, path) => api.get('/recipes/group', { path });

export default {
  async 'a leader of Ostler hands over'(world) {
    const { admin, api, server } = world;
    const path = '/scheduler/handed';
    const [first] = await elect(world, path, 2, server);
    const before = await until('two programs are in the group', async () => {
      const found = await group(api, path);
      return found.waiting === 1 && found.hand_over.way === 'fence' && found;
    });
    const page = await open(admin, `leadership?path=${path}`);
    await page.getByRole('button', { name: 'Hand over …' }).click();
    await has(page, before.holder.session, 'dialog');
    await page.locator('dialog button.primary').click();
    await has(page, 'is deleted. It stops leading', 'dialog');
    const after = await until('the next one leads', async () => {
      const found = await group(api, path);
      return found.holder && found.holder.session !== before.holder.session && found;
    });
    expect(after.holder.session === before.queue[1].session && BigInt(after.holder.token) > BigInt(before.holder.token), JSON.stringify(after.holder));
    await until('the old leader has stopped', () => first.exitCode !== null);
    expect(await api.get(`/sessions/${after.holder.session}`).then(({ live }) => live), 'the session of the new leader lives');
    await page.locator('dialog footer button').first().click();
    await has(page, after.holder.session);
    await close(page);
  },

  async 'a lock of Curator is taken by ending its session only'(world) {
    const { admin, api, servers } = world;
    const path = '/locks/report';
    const { holder, queue, hand_over } = await group(api, path);
    expect(hand_over.way === 'expire' && queue.length === 2, JSON.stringify(hand_over));
    const page = await open(admin, `leadership?path=${path}`);
    await settled(page);
    expect(await page.getByRole('button', { name: 'Hand over …' }).count() === 0, 'the znode of another library is deleted');
    await close(page);
    // Only the leader ends sessions for a group; its console refuses whom it does not know.
    const leader = await servers.untilLed();
    expect((await leader.api.raw('/recipes/hand-over', { method: 'POST', body: JSON.stringify({ path, holder: holder.path, token: holder.token, way: 'expire' }) })).status >= 400, 'somebody unknown ends a session');
    expect((await group(api, path)).holder.session === holder.session, 'the holder stays');
  },

  async 'a session is ended by its page'({ admin, api, shells, servers, server }) {
    await shells.hold(server.address, ['create -e /to-be-ended x']);
    const { owner } = await api.get('/tree/node', { path: '/to-be-ended' });
    const page = await open(admin, `sessions?id=${owner.session}`);
    await has(page, '/to-be-ended', 'dialog');
    await page.locator('dialog').getByRole('button', { name: 'Expire …' }).click();
    await has(page, 'ephemeral znode', 'dialog');
    await page.locator('dialog button.danger').click();
    await has(page, 'has ended, and its ephemerals are gone', 'dialog');
    expect(!await servers.members[2].api.exists('/to-be-ended') && !await api.exists('/to-be-ended'), 'its ephemeral is gone');
    await close(page);
    const ended = await open(admin, 'sessions?state=ended');
    await has(ended, owner.session);
    await close(ended);
  },
};
